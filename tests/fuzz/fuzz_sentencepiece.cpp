// Any bytes as tokenizer.model: refused with an Error, or a tokenizer whose ids are its own.
#include <cstdint>

#include "stretto/base/error.h"
#include "stretto/tokenize/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stretto;
  try {
    const Tokenizer tokenizer(parse_tokenizer({reinterpret_cast<const char*>(data), size}, "fuzz.model"), "fuzz.model");
    const auto ids = tokenizer.encode("a text<s>  12 \xc3\xa9 \xef\xac\x81 \xff\n", true);
    for (const auto id : ids)
      if (id < 0 || id >= tokenizer.vocab()) __builtin_trap();
    tokenizer.decode(ids);
  } catch (const Error&) {
  }
  return 0;
}

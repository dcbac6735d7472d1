// Any bytes as tokenizer.json: refused with an Error, or a tokenizer that writes itself, and that gives back the text
// it has encoded unless its vocabulary or its expression cannot.
#include <cstdint>

#include "stretto/base/error.h"
#include "stretto/tokenize/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stretto;
  try {
    const TokenizerParts parts = parse_tokenizer({reinterpret_cast<const char*>(data), size}, "fuzz");
    const Tokenizer tokenizer(parts, "fuzz");
    for (const auto id : tokenizer.encode("the text<e> 12 \xc3\xa9 \xff\n", true))
      if (id < 0 || id >= tokenizer.vocab()) __builtin_trap();
    if (parse_tokenizer(tokenizer_json(parts), "again").vocab != parts.vocab) __builtin_trap();  // byte-level ones
  } catch (const Error&) {
  }
  return 0;
}

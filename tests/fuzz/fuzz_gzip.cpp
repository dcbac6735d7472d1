// Any bytes as a gzip file: an Error, or content; never more than a block is asked for at a time.
#include <cstdint>

#include "stretto/base/error.h"
#include "stretto/formats/gzip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stretto;
  try {
    GzipReader reader(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz.gz");
    std::string content;
    for (int blocks = 0; blocks < 64 && reader.read(content); ++blocks) content.clear();
    if (reader.done() > size) __builtin_trap();
  } catch (const Error&) {
  }
  return 0;
}

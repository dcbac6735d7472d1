// Any bytes as JSON: refused with an Error, or a tree whose text reads back as the same tree.
#include <cstdint>

#include "stretto/formats/fields.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stretto;
  Field field;
  try {
    field = read_json({reinterpret_cast<const char*>(data), size}, "fuzz");
  } catch (const Error&) {
    return 0;
  }
  const std::string text = write_json(field);
  if (write_json(read_json(text, "fuzz")) != text) __builtin_trap();
  return 0;
}

// Any bytes as TOML and as a command-line override: refused with an Error, or a tree whose text reads back.
#include <cstdint>

#include "stretto/formats/fields.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stretto;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  Field field;
  bool is_toml = true;
  try {
    field = read_toml(input, "fuzz");
  } catch (const Error&) {
    is_toml = false;
  }
  if (is_toml) {
    const std::string text = write_toml(field);
    if (write_toml(read_toml(text, "fuzz")) != text) __builtin_trap();
  }
  Field root;
  try {
    override_field(root, input);
  } catch (const Error&) {
  }
  return 0;
}

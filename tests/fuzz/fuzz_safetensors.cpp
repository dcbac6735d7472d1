// Any bytes as a safetensors file: read in full, or refused with an Error.
#include <cstdint>

#include "stretto/base/error.h"
#include "stretto/formats/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stretto;
  const auto bytes = std::as_bytes(std::span(data, size));
  SafeTensorsHeader header;
  try {
    header = parse_safetensors(bytes, "fuzz");
  } catch (const Error&) {
    return 0;
  }
  std::size_t total = 0;
  for (const auto& [name, tensor] : header.tensors) {
    values<double>(tensor, name);
    total += tensor.bytes.size();
  }
  if (total > size) __builtin_trap();
  return 0;
}

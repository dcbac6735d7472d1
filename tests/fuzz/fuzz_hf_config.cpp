// Any bytes as config.json: refused with an Error, or a valid model that reads back as the same where it can be
// written.
#include <cstdint>

#include "stretto/models/hf.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stretto;
  try {
    const HfConfig read = parse_hf_config(read_json({reinterpret_cast<const char*>(data), size}, "fuzz"));
    if (!validate(read.config).empty()) __builtin_trap();
    const Field written = hf_config(read.config, read.stored);
    const HfConfig again = parse_hf_config(read_json(write_json(written), "again"));
    if (!(again.config == read.config) || again.stored != read.stored) __builtin_trap();
  } catch (const Error& e) {
    if (e.kind() == Error::Kind::bug) __builtin_trap();
  }
  return 0;
}

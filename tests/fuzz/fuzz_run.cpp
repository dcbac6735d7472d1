// Any bytes as RUN.toml: refused with an Error, or a run whose resolved form reads as itself.
#include <cstdint>

#include "stretto/config/run.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stretto;
  RunConfig run;
  try {
    run = parse_run({reinterpret_cast<const char*>(data), size}, "fuzz.toml");
  } catch (const Error& e) {
    if (e.kind() == Error::Kind::bug) __builtin_trap();
    return 0;
  }
  const std::string text = resolved_toml(run);
  if (resolved_toml(parse_run(text, "fuzz.toml")) != text) __builtin_trap();
  return 0;
}

// Any bytes as a graph's file: refused with an Error, or a model that is traced, or refused while it is traced.
#include <cstdint>

#include "stretto/graphs/graph_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stretto;
  try {
    const GraphFile file = parse_graph({reinterpret_cast<const char*>(data), size}, "fuzz");
    Trace t;
    model_of(file)(t);
  } catch (const Error&) {
  }
  return 0;
}

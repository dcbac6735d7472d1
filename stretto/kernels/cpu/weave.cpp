#include "stretto/kernels/cpu/place.h"

namespace stretto {
namespace {
constexpr Kernel kernels[] = {{.name = "place", .prepare = &place_all}};
}  // namespace

std::span<const Kernel> weave_kernels() { return kernels; }
}  // namespace stretto

// What backward makes again instead of keeping it from forward.
//
//   Parallel p{.mesh = {{"pipe", 4}}, .recompute = {Recompute::selective}};
//
// Results are bit-equal for every choice: the same kernels run on the same arguments a second time.
#pragma once
#include <cstdint>
#include <string_view>

namespace stretto {

enum class Recompute : std::uint8_t {
  none,       // keep everything that backward reads
  full,       // keep the stage's inputs only
  layer,      // keep the inputs of every piece, half a layer: one piece at a time is made again
  selective,  // keep results of contractions and attention; make the cheap rest again
};
std::string_view name_of(Recompute);

}  // namespace stretto

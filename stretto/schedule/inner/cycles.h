// Actors that wait for each other in a circle although every message is delivered at once.
//
//   for (const Cycle& c : find_cycles(ActionIndex(schedule))) ...
#pragma once
#include <cstdint>
#include <vector>

#include "stretto/schedule/index.h"

namespace stretto {

struct CycleHop {
  std::uint32_t waits, needs;  // action `waits` cannot start before action `needs` on the next hop's actor has run
};
using Cycle = std::vector<CycleHop>;

// Plays the rows in order, an overlap group as one. Where nothing can go on, each circle of waiting actors is one
// cycle; its waits are then taken as granted and the play continues, so that later ones are found too. Waits within one
// row are not looked at: their order is checked directly.
std::vector<Cycle> find_cycles(const ActionIndex&);

}  // namespace stretto

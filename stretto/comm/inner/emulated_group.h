// Collectives that take as long as over emulated links, one at a time. Members tell each other when they have started,
// so that all of them agree on when a collective ends.
//
//   const Cluster links = equal_links(Link{1e-5, 1e9});
//   auto group = emulated_group(links, ranks, under_way, std::move(real), std::move(told));
#pragma once
#include "stretto/comm/wiring.h"

namespace stretto {

u64 bytes_of_starts(std::size_t members, int under_way);  // of memory that `told` needs

// `real` moves the content; none: there is nothing to move. `told` is between the same members, in their order.
std::unique_ptr<CollectiveGroup> emulated_group(const Cluster& links, std::vector<int> ranks, int under_way,
                                                std::unique_ptr<CollectiveGroup> real, GroupWithMemory told);

}  // namespace stretto

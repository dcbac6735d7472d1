// A group between processes whose collectives are complete as late as over emulated links: members tell each other when
// they have started. Without a group inside that moves anything it is for emulated devices, which have no memory.
//
//   auto group = timed_group(communicator, member, std::move(inner), Link{1e-5, 1e9}, under_way, spins);
#pragma once
#include <memory>
#include <optional>

#include "stretto/comm/collective.h"
#include "stretto/cost/machine.h"

namespace stretto {

std::unique_ptr<CollectiveGroup> timed_group(int communicator, int member, std::unique_ptr<CollectiveGroup> inner,
                                             const std::optional<Link>&, int under_way, int spins);

}  // namespace stretto

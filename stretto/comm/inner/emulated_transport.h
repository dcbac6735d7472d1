// Messages that take as long as over emulated links, one at a time between two ranks.
//
//   auto t = emulated_transport(program, equal_links(Link{1e-5, 1e9}), coordinate, std::move(real), std::move(notes));
//
// A note goes along with every message: when it arrives.
#pragma once
#include "stretto/comm/wiring.h"

namespace stretto {

// `real` moves the content; none: there is nothing to move.
std::unique_ptr<Transport> emulated_transport(const Program&, const Cluster& links, int coordinate,
                                              std::unique_ptr<Transport> real, Notes);

}  // namespace stretto

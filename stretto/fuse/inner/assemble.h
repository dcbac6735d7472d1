// From nodes to kernel calls: every value gets a place in a buffer, and a call is made of every node that is not a
// view.
//
//   Calls calls = assemble(group_pointwise(body, {}), results);
#pragma once
#include "stretto/fuse/fuse.h"

namespace stretto {

// Every output is made by a kernel, and by no other output's: fuse() sees to that.
Calls assemble(Graph, const ResultMemories&);

}  // namespace stretto

// The bytes that a rank of each actor holds: as the program plans them, and under the software of a cluster
// (cost/stack.h) what that keeps more or less.
//
//   for (const Held& h : held(program, cluster))
//     fmt::print("{} of states, {} of activations\n", h.states, h.activations);
#pragma once
#include <vector>

#include "stretto/cost/machine.h"
#include "stretto/program/program.h"

namespace stretto {

struct Held {
  double states = 0;       // parameters, gradients, the optimizer's
  double activations = 0;  // all else
  double bytes() const { return states + activations; }
};
std::vector<Held> held(const Program&, const Cluster&);

// What the stack keeps from a forward task to backward beside what the program does: scores, masks of dropout. Less
// than nothing where it makes more again than the program.
double kept_beside(const Program&, TaskId, const Stack&);
double workspace(const Cluster&, double scratch);  // `scratch` is that of our own kernels

}  // namespace stretto

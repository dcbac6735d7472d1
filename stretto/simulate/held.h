// The bytes that a rank of each actor holds: as the program plans them, and under the software of a cluster
// (cost/stack.h) what that keeps more or less.
//
//   for (const Held& h : held(program, cluster))
//     fmt::print("{} of states, {} of activations\n", h.states, h.activations);
#pragma once
#include <optional>
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

// Bytes of a rank as they are planned.
struct PlannedBytes {
  double params = 0, gradients = 0, state = 0;
  double batch = 0;  // and results
  double scratch = 0, activations = 0;
};
// What a stack's own memory depends on beside these.
struct KeptByStack {
  double beside = 0;                    // of `kept_beside`, the most at one time
  std::optional<double> products = {};  // all that is kept instead of activations, and what is gathered
  double logits = 0;                    // how many; none: another actor has the loss
  bool gathers = false;                 // parameters are cut over data ranks
  double data = 1, context = 1;         // ranks
  bool pipeline = false;
};
Held held_under(const Cluster&, const PlannedBytes&, const KeptByStack&);

// The most that is kept at one time of what comes and goes, or the least if that is less than nothing.
struct MostAtOnce {
  double now = 0, most = 0;
  void keep(double bytes, double while_it_runs = 0);
  void drop(double bytes) { now -= bytes; }
};
// Of logits in 16 bits and their gradient, and what the stack's loss holds beside them.
inline double bytes_of_loss(const Stack& s, double logits) { return (s.memory.logits + 4) * logits; }

// What the stack keeps from a forward task to backward beside what the program does: scores, masks of dropout. Less
// than nothing where it makes more again than the program.
double kept_beside(const Program&, TaskId, const Stack&);
// Every other product's result, where selective recompute keeps these; 0 of the loss.
double kept_products(const Program&, TaskId);
bool keeps_its_own(const Stack&);  // anything that programs do not, or less
bool keeps_products(const Stack&, Recompute);
double logits_of(const Program&);                  // that the last piece makes
double workspace(const Cluster&, double scratch);  // `scratch` is that of our own kernels

}  // namespace stretto

// What a stack (stack.h) changes about a program's price, as factors that change nothing where it says nothing. Prices
// multiply by them and never ask which software it is.
//
//   const StackFactors f = factors_of(cluster, ranks);
//   seconds *= f.all;
#pragma once
#include <optional>

#include "stretto/cost/machine.h"

namespace stretto {

struct StackFactors {
  double all = 1;        // of every time: the fitted factor, and what a step gets longer with its nodes
  double issue = 0;      // seconds to issue a phase of a piece; a layer is two pieces
  double gradients = 1;  // bytes of a gradient in f32, on the wire and in memory
  // Shares of collectives within tasks, and of messages, that are waited for.
  double tensor = 1, exchanges = 1, messages = 1;
  bool sender_waits = false;      // for its messages
  double passes = 1, update = 1;  // bytes of passes over elements: within a microbatch; of norms, clipping, update
  double loss = 0;                // bytes per logit in passes of the loss's own; 0: as the program has it
  struct Parts {                  // of what a forward takes
    double products = 0, attention = 0, elements = 0, collectives = 0;
  };
  std::optional<Parts> full, selective;  // what recompute makes again; none: what the program does
  // What is one thing, or in parts, where the program has it otherwise: stack.h.
  bool joined_products = false, narrow_gathers = false, balanced_context = false;
  bool one_wire = false, keeps_gathered = false, cut_messages = false, cut_exchanges = false;
};

StackFactors factors_of(const Cluster&, int ranks);  // ranks as `placed` has them on the cluster

}  // namespace stretto

// What a stack (stack.h) changes about the time that a program takes, as factors that change nothing where it says
// nothing. Prices, players and the planner multiply by them and never ask which software it is.
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
  bool sender_waits = false;  // for its messages
  // Shares of collectives that go on beside tasks, whatever stands there, and how much these slow the tasks down; none:
  // all of what the program puts there.
  struct Hidden {
    std::optional<double> tensor = {}, sums = {}, gathers = {};
    double beside = 0;
  } hidden = {};
  double step = 0;                // seconds of a step beside
  double passes = 1, update = 1;  // bytes of passes over elements: within a microbatch; of norms, clipping, update
  double loss = 0;                // bytes per logit in passes of the loss's own; 0: as the program has it
  struct Parts {                  // of what a forward takes
    double products = 0, attention = 0, elements = 0, collectives = 0;
  };
  std::optional<Parts> full, selective;  // what recompute makes again; none: what the program does
  // What is one thing, or in parts, where the program has it otherwise: stack.h.
  bool joined_products = false, narrow_gathers = false, balanced_context = false;
  bool one_wire = false, keeps_gathered = false, cut_messages = false, cut_exchanges = false;
  bool joined_backward = false, free_update = false;
};

StackFactors factors_of(const Cluster&, int ranks = 1);  // ranks as `placed` has them on the cluster

// What a message between two actors goes over: each of the `copies` ranks that hold it alike sends a part, and they
// gather it on arrival.
Link for_messages(const Link&, const Cluster&, const StackFactors&, int copies);

}  // namespace stretto

// Storage that is cut over ranks, apart from the tasks that compute: gathers of parameters before they are needed,
// reduce-scatters of gradients after the tasks that make them. As tasks of their own, which call no kernel, they
// can go on beside others.
//
//   Step step = split(sharded.graph);
//   step = set_apart(step);                    // tasks U, S and A; F, R, I, W read values instead of parameters
//
// U of a piece gathers its parameters: all that its phases read (`whole`), or, where that is less, what
// backward reads (`backward`). W makes whole gradients as values, S reduces and scatters them, A adds the
// rank's part to the accumulators.
#pragma once
#include "stretto/step/step.h"

namespace stretto {

// What is not a gather of a parameter, or a reduce-scatter right before an accumulator, stays where it is.
Step set_apart(Step);

// A value that a U makes: it lives from there to its last reader, whatever microbatch that works on.
inline bool gathered(const Step& s, ValueId value) { return s.tasks[s.values[value].producer].part == Part::U; }
// Such a value, or a gradient on its way to an accumulator: no activation.
inline bool of_storage(const Step& s, ValueId value) {
  const CrossValue& v = s.values[value];
  const auto beside = [&](TaskId task) {
    return s.tasks[task].part == Part::U || s.tasks[task].part == Part::S || s.tasks[task].part == Part::A;
  };
  return beside(v.producer) || (!v.consumers.empty() && beside(v.consumers[0]));
}

}  // namespace stretto

// stochastic_round(x, {.name = "m of wte"}): x in bf16. Each element becomes one of its two neighbours, the nearer one
// more often: on average nothing is lost, which is what a running average needs that moves by less than half a step.
//
// Made by compile/inner/epilogue.h for states of optimizers. Which one it becomes is a function of logical things only:
// the run's seed, the name, `which`, the step, and the element's logical index. x may be a part of a box, flat, as the
// optimizer's states are: then the index is that in the box, which may itself be a rank's part of the whole.
#pragma once
#include <string>
#include <vector>

#include "stretto/ir/layout.h"
#include "stretto/ir/op.h"

namespace stretto {

struct StochasticRoundAttrs {
  std::string name;
  i64 key = 0;             // in a task's body, instead of the name
  i64 which = 0;           // others of the same name have another number
  DimSet box;              // none: x itself is the box
  std::vector<i64> split;  // dims of the box, by position, whose block an operand tells: the first after x, and so on
  static constexpr void fields(auto& s, auto f) {
    f("name", s.name);
    f("key", s.key);
    f("which", s.which);
    f("box", s.box);
    f("split", s.split);
  }
};
Tensor stochastic_round(Tensor x, StochasticRoundAttrs);
// x is one row of a box with such dims, from where its own dim says it starts. Dims with axes are a rank's part.
Tensor stochastic_round(Tensor x, StochasticRoundAttrs, const Dims& box, const Mesh&);

}  // namespace stretto

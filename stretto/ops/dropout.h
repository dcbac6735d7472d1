// dropout(x, 0.1): zeroes each element with that probability and scales the others up.
//
// What is zeroed is a function of logical things only: the run's seed, the op's scoped name, the step, the sequence's
// number in the step's global batch (along the dim `batch`, by default x's first) and the index inside the sequence.
#pragma once
#include <string>
#include <string_view>

#include "stretto/ir/op.h"

namespace stretto {

struct DropoutAttrs {
  double rate = 0;
  std::string name;  // with its scope
  i64 key = 0;       // in a task's body, instead of the name
  DimSet batch;      // its one dim; none: x has no dims
  static constexpr void fields(auto& s, auto f) {
    f("rate", s.rate);
    f("name", s.name);
    f("key", s.key);
    f("batch", s.batch);
  }
};
// Without a name the dropouts of a scope are numbered as they come. rate 0 gives x itself.
Tensor dropout(Tensor x, double rate, std::string_view name = {});
Tensor dropout(Tensor x, double rate, std::string_view name, const Dim& batch);

}  // namespace stretto

// A group of pointwise ops evaluated in one pass. Made by fuse/ only; a user never writes it.
//
// steps[k] is the op of step k, by its name in the op table. args lists, step after step, its counts[k] operands: 0 ..
// n-1 are the group's own operands, n + j is the result of step j. A step named "constant" has no operands and the
// value values[k]. dtypes[k] is the type of step k's result. The node's results are the steps in `results`.
#pragma once
#include <string>
#include <vector>

#include "stretto/ir/op.h"

namespace stretto {

// The most operands, constants and steps of a group together: as many values does its kernel hold at once.
constexpr int fused_registers = 40;

struct FusedAttrs {
  std::vector<std::string> steps;
  std::vector<i64> counts, args;
  std::vector<double> values;
  std::vector<DType> dtypes;
  std::vector<i64> results;
  DimSet space;  // the dims the group iterates over, in order
  static constexpr void fields(auto& s, auto f) {
    f("steps", s.steps);
    f("counts", s.counts);
    f("args", s.args);
    f("values", s.values);
    f("dtypes", s.dtypes);
    f("results", s.results);
    f("space", s.space);
  }
};
const Op* op_named(std::string_view name);  // from the op table; null when there is none

}  // namespace stretto

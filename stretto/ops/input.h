// Sources: values that come from outside of the graph. Made by Trace: `t.input("x", {batch, in})`.
#pragma once
#include <string>
#include <string_view>

#include "stretto/ir/op.h"

namespace stretto {

// A value given per microbatch (a batch input) or per step (a scalar the host sets: "lr", "step").
struct InputAttrs {
  std::string name;
  DType dtype = f32;
  DimSet dims;
  bool per_step = false;
  static constexpr void fields(auto& s, auto f) {
    f("name", s.name);
    f("dtype", s.dtype);
    f("dims", s.dims);
    f("per_step", s.per_step);
  }
};
Tensor input(Builder&, std::string name, DType, const Dims& dims, bool per_step = false);

}  // namespace stretto

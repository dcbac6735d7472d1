// A trainable (or frozen) tensor. Made by Trace: `t.param("w", {in, out})`. What is known about it beside its type
// (init, decay, ...) is in trace/; here it is only a source, so that equal stages with different parameters have equal
// bodies.
#pragma once
#include <string>

#include "stretto/ir/op.h"

namespace stretto {

struct ParamAttrs {
  std::string name;
  DType dtype = f32;
  DimSet dims;
  static constexpr void fields(auto& s, auto f) {
    f("name", s.name);
    f("dtype", s.dtype);
    f("dims", s.dims);
  }
};
Tensor param(Builder&, std::string name, DType, const Dims& dims);

}  // namespace stretto

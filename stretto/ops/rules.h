// Type, placement and cost rules that several ops share.
#pragma once
#include "stretto/ir/op.h"

namespace stretto::rules {

// Result has the dims of the operand that has them all; two operands that each lack a dim of the other are refused
// (a forgotten rename must not silently become an outer product). All operands have one dtype.
std::vector<Type> pointwise(const OpCall&);
std::vector<Type> same_as_first(const OpCall&);
inline Spread nothing(const OpCall&) { return {}; }
template <int flops>
Cost streaming(const OpCall& c) {
  return c.streaming(flops);
}
// For float-only unary functions: refuses i32 operands, with a hint to cast.
std::vector<Type> float_unary(const OpCall&);

}  // namespace stretto::rules

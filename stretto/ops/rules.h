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
inline Cost free(const OpCall&) { return {}; }  // views
inline Spread linear(const OpCall&) { return {.linear = {0}}; }
// For float-only unary functions: refuses i32 operands, with a hint to cast.
std::vector<Type> float_unary(const OpCall&);

// The id of a dim the user named; an Error says so when x has none of that name or size.
DimId dim_of(std::string_view where, Tensor x, const Dim& named);
DimSet dims_of(std::string_view where, Tensor x, const Dims& named);
// Operand i has this one dim and the dtype of operand 0, or an Error says so.
void vector_along(const OpCall&, int i, DimId only);

// Views: every dim of the result is the operand's of the same name (or new: broadcast), or they match one to one.
ViewMap by_name(const DimSet& operand, const DimSet& result);
ViewMap in_order(const DimSet& operand);

}  // namespace stretto::rules

// For ops only: type, placement and cost rules that several of them share.
#pragma once
#include "stretto/ir/op.h"

namespace stretto::rules {

// Result has the dims of the operand that has them all; two operands that each lack a dim of the other are refused
// (a forgotten rename must not silently become an outer product). All operands have one dtype.
std::vector<Type> pointwise(const OpCall&);
std::vector<Type> float_pointwise(const OpCall&);  // ... and refuses i32
DimSet widest_dims(const OpCall&);                 // the part of `pointwise` about dims alone
std::vector<Type> same_as_first(const OpCall&);
inline Spread nothing(const OpCall&) { return {}; }
template <int operand>
Spread zero_of_zero(const OpCall&) {  // a zero of this operand makes a zero
  return {.zeros = {operand}};
}
template <int flops>
Cost streaming(const OpCall& c) {
  return c.streaming(flops);
}
template <int flops>
Cost reading(const OpCall& c) {  // ... of which there are so many per element of the first operand
  Cost cost = c.streaming(0);
  cost.flops = flops * c.elements(c.in(0));
  return cost;
}
inline Cost free(const OpCall&) { return {}; }  // views
inline Spread linear(const OpCall&) { return {.linear = {0}}; }
inline Spread linear_together(const OpCall&) { return {.linear = {0, 1}, .jointly = true}; }
inline std::vector<Tensor> pass_gradient(const Vjp& v) { return {v.grad[0]}; }  // of what changes no number
// For float-only unary functions: refuses i32 operands, with a hint to cast.
std::vector<Type> float_unary(const OpCall&);
inline constexpr std::array<std::optional<InPlace>, 2> first_in_place{InPlace{0, 0}};

// A number as an operand beside `like`; a fraction beside integers is refused.
Tensor number(std::string_view where, double value, Tensor like);

// The id of a dim the user named; an Error says so when x has none of that name or size.
DimId dim_of(std::string_view where, Tensor x, const Dim& named);
DimSet dims_of(std::string_view where, Tensor x, const Dims& named);
// Operand i has this one dim and the dtype of operand 0, or an Error says so.
void vector_along(const OpCall&, int i, DimId only);

// The first operand's dims with one more at `place`.
DimSet inserted(const OpCall&, DimId added, i64 place);

// Views: every dim of the result is the operand's of the same name (or new: broadcast), or they match one to one.
ViewMap by_name(const DimSet& operand, const DimSet& result);
ViewMap in_order(const DimSet& operand);
inline ViewMap view_by_name(const OpCall& c, int) { return by_name(c.in(0).dims, c.out().dims); }

}  // namespace stretto::rules

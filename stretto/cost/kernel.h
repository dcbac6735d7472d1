// What one kernel call takes.
//
//   double t = kernel_seconds({.cost = op.cost(call), .of_bf16 = true}, machine);
//
// A machine without rates is a roofline: bound by its arithmetic or its memory traffic. With rates (a device file):
//   product m n k   flops / (peak * product * s(m) s(n) s(k)), s(x) = x / (x + small), or its bytes if they take longer
//   attention       its causal operations at a rate of its own; or, where scores are kept, batched products and passes
//                   over the scores
//   all else        bytes / (bandwidth * elements)
// and every kernel costs a little beside. Threads of a rank share what is worth it, and have to be woken.
#pragma once
#include "stretto/cost/machine.h"
#include "stretto/ir/op.h"

namespace stretto {

enum class WorkKind : std::uint8_t { elements, product, attention };

struct KernelWork {
  Cost cost = {};
  bool accumulates = false;  // what it writes is read before
  bool of_bf16 = false;      // its operands
  bool narrow = false;       // a product that may be made in fewer bits (Rates::narrow)
};
WorkKind kind_of(const KernelWork&);
double kernel_seconds(const KernelWork&, const Machine&);

}  // namespace stretto

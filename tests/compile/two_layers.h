// The smallest model with everything an arrow has to carry: two pieces, a tied and a frozen parameter, a metric.
#pragma once
#include "stretto/compile/traced.h"
#include "stretto/ops/all.h"

namespace stretto::test {

inline Loss two_layers(Trace& t) {
  const Dim rows = t.batch("batch", 8), in{"in", 4}, mid{"mid", 6};
  const Tensor x = t.input("x", {rows, in}), w = t.param("w", {in, mid});
  const Tensor h = boundary(relu(contract(x, w, in)));
  const Tensor back = contract(h * t.param("scale", {mid}, {.trainable = false}), w, mid);
  t.metric("size", sum(square(back), back.dims()), Accumulate::sum);
  return mean_of(square(back - x + t.bias("shift", {in})));
}

}  // namespace stretto::test

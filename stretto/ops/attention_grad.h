// Gradient of attention: results dq, dk, dv. The scores are computed again. Made by differentiation.
#pragma once
#include "stretto/ops/attention.h"

namespace stretto {

struct AttentionGradAttrs {
  DimId query, key, head;
  bool causal = true;
  double scale = 1;
  static constexpr void fields(auto& s, auto f) {
    f("query", s.query);
    f("key", s.key);
    f("head", s.head);
    f("causal", s.causal);
    f("scale", s.scale);
  }
};
// o and lse are the results of attention(q, k, v).
Tensor attention_grad(Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, Tensor g, const AttentionAttrs&);

}  // namespace stretto

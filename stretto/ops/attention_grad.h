// Gradient of attention: results dq, dk, dv. The scores are computed again. Made by differentiation.
#pragma once
#include "stretto/ops/attention.h"

namespace stretto {

using AttentionGradAttrs = AttentionAttrs;
// o and lse are the results of attention(q, k, v). What sinks take is in lse.
Tensor attention_grad(Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, Tensor g, AttentionAttrs, Tensor since = {},
                      Tensor until = {});

}  // namespace stretto

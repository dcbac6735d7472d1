// softmax(scale * q k) v, without ever holding all queries times all keys.
//
//   attention(q, k, v, {.query = seq, .key = seq_k, .head = head})
//   // q{batch seq kv group head}   k, v{batch seq_k kv head}
//
// Dims that q has and k lacks (beside the query dim) are groups of heads that share keys and values.
#pragma once
#include <optional>

#include "stretto/ir/op.h"

namespace stretto {

struct AttentionOptions {
  Dim query = {}, key = {}, head = {};
  bool causal = true;                // a query sees keys at its own position and before
  std::optional<double> scale = {};  // 1 / sqrt(head) unless told
};
struct AttentionAttrs {
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
// The node's results are the output, with q's dims, and the logarithm of every query's sum of exponentials.
Tensor attention(Tensor q, Tensor k, Tensor v, const AttentionOptions& options);

// scale * q k without what a query may not see: how attention begins when it is taken apart because a dim is split.
Tensor attention_scores(Tensor q, Tensor k, const AttentionAttrs&);

}  // namespace stretto

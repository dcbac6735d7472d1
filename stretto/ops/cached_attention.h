// Attention of new queries over the keys and values of all positions so far, which are kept from call to call.
//
//   cached_attention(q, k, v, k_cache, v_cache, positions, {.query = seq, .cache = cache, .head = head})
//
// q{batch seq kv group head} k,v{batch seq kv head} caches{batch kv cache head} positions{seq}: first the rows of k and
// v are written into the caches at their positions, the only op that writes to operands; then a query sees the keys at
// its own position and before. It has no gradient: it is for decoding.
#pragma once
#include <optional>

#include "stretto/ir/op.h"

namespace stretto {

struct CachedAttentionOptions {
  Dim query = {}, cache = {}, head = {};
  std::optional<double> scale = {};  // 1 / sqrt(head) unless told
};
struct CachedAttentionAttrs {
  DimId query, cache, head;
  double scale = 1;
  static constexpr void fields(auto& s, auto f) {
    f("query", s.query);
    f("cache", s.cache);
    f("head", s.head);
    f("scale", s.scale);
  }
};
Tensor cached_attention(Tensor q, Tensor k, Tensor v, Tensor k_cache, Tensor v_cache, Tensor positions,
                        const CachedAttentionOptions&);

}  // namespace stretto

// Attention of new queries over the keys and values of all positions so far, which are kept from call to call.
//
//   cached_attention(q, k, v, k_cache, v_cache, positions, {.query = seq, .cache = cache, .head = head})
//
// q{batch seq kv group head} k,v{batch seq kv head} caches{batch kv cache head} positions{seq}: first the rows of k and
// v are written into the caches at their positions, the only op that writes to operands; then a query sees the keys at
// its own position and before, and one more score where there are sinks {kv group}. It has no gradient: it is for
// decoding.
#pragma once
#include <optional>

#include "stretto/ir/op.h"

namespace stretto {

struct CachedAttentionOptions {
  Dim query = {}, cache = {}, head = {};
  std::optional<Dim> value = {};     // what a head's values are along, when that is not `head`
  std::optional<double> scale = {};  // 1 / sqrt(head) unless told
  i64 window = 0;                    // a query sees so many keys at most; 0: all
  i64 chunk = 0;                     // keys come in chunks of so many, and a query sees its own one; 0: one for all
  double softcap = 0;                // scores become softcap * tanh(score / softcap); 0: they do not
};
struct CachedAttentionAttrs {
  DimId query, cache, head, value;
  double scale = 1;
  i64 window = 0, chunk = 0;
  double softcap = 0;
  static constexpr void fields(auto& s, auto f) {
    f("query", s.query);
    f("cache", s.cache);
    f("head", s.head);
    f("value", s.value);
    f("scale", s.scale);
    f("window", s.window);
    f("chunk", s.chunk);
    f("softcap", s.softcap);
  }
};
Tensor cached_attention(Tensor q, Tensor k, Tensor v, Tensor k_cache, Tensor v_cache, Tensor positions,
                        const CachedAttentionOptions&, Tensor sinks = {});

}  // namespace stretto

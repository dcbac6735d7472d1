// softmax(scale * q k) v, without ever holding all queries times all keys.
//
//   attention(q, k, v, {.query = seq, .key = seq_k, .head = head})
//   // q{batch seq kv group head}   k, v{batch seq_k kv head}
//   attention(q, k, v, {..., .window = 4096}, {.since = starts(segments, seq), .sinks = s})
//   attention(q, k, v, {..., .causal = false}, {.until = maximum(positions + 1, prefix)})    // prefixes see themselves
//
// A query sees one interval of keys. Dims that q has and k lacks (beside the query dim) are groups of heads that share
// keys and values.
#pragma once
#include <optional>

#include "stretto/ir/op.h"

namespace stretto {

struct AttentionOptions {
  Dim query = {}, key = {}, head = {};
  std::optional<Dim> value = {};     // what a head's values are along, when that is not `head`
  bool causal = true;                // a query sees keys at its own position and before
  std::optional<double> scale = {};  // 1 / sqrt(head) unless told
  i64 window = 0;                    // a query sees so many keys at most, its own and those before it; 0: all
  i64 chunk = 0;                     // keys come in chunks of so many, and a query sees its own one; 0: one for all
  double softcap = 0;                // scores become softcap * tanh(score / softcap); 0: they do not
};
// Operands that only some have.
struct AttentionExtras {
  Tensor since = {};  // {.. query}, i32: the first key a query sees, where chunks begin to count
  Tensor until = {};  // {.. query}, i32: the first key a query no longer sees, instead of `causal`
  Tensor sinks = {};  // some of q's dims: a further score, of a key without a value
};
struct AttentionAttrs {
  DimId query, key, head, value;
  bool causal = true;
  double scale = 1;
  i64 window = 0, chunk = 0;
  double softcap = 0;
  bool since = false, until = false, sinks = false;  // are these operands there? In this order, after all others
  static constexpr void fields(auto& s, auto f) {
    f("query", s.query);
    f("key", s.key);
    f("head", s.head);
    f("value", s.value);
    f("causal", s.causal);
    f("scale", s.scale);
    f("window", s.window);
    f("chunk", s.chunk);
    f("softcap", s.softcap);
    f("since", s.since);
    f("until", s.until);
    f("sinks", s.sinks);
  }
  // Which operands `since` and `until` are, when all others before them are so many.
  std::optional<int> since_at(int others) const { return since ? std::optional(others) : std::nullopt; }
  std::optional<int> until_at(int others) const { return until ? std::optional(others + since) : std::nullopt; }
  double keys_seen(const Graph&) const;  // by a query, in the mean over those of a rank that has the last ones
  AttentionShape shape(const Graph&, const Type& q) const;
};
// The node's results are the output, with q's dims but for `value`, and the logarithm of every query's sum of
// exponentials. Of a query that sees nothing both are zero.
Tensor attention(Tensor q, Tensor k, Tensor v, const AttentionOptions& options, const AttentionExtras& = {});

// scale * q k without what a query may not see: how attention begins when it is taken apart because a dim is split, or
// because its weights are needed.
Tensor attention_scores(Tensor q, Tensor k, const AttentionAttrs&, Tensor since = {}, Tensor until = {});

// Per element the first place of its run of equal numbers along a dim: where the document of a position begins.
struct StartsAttrs {
  DimId along;
  static constexpr void fields(auto& s, auto f) { f("along", s.along); }
};
Tensor starts(Tensor ids, const Dim& along);

}  // namespace stretto

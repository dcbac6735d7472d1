// Which stretch of the data is the n-th sequence of a run: a function of seed and n only, so that the order never
// depends on ranks, microbatches or where a run was resumed.
//
//   Order order(text->tokens(), 256, seed);
//   i64 first = order.first_token((step - 1) * batch + row);
//
// An epoch is a permutation of the windows that the data is cut into; every epoch cuts at another offset.
#pragma once
#include "stretto/base/id.h"
#include "stretto/base/philox.h"

namespace stretto {

class Order {
 public:
  // tokens > length: a sequence's targets reach one token further. In rows: tokens are whole sequences, and the cuts
  // stay between them.
  Order(i64 tokens, i64 length, u64 seed, bool in_rows = false);
  i64 first_token(i64 sequence) const;
  i64 windows() const { return windows_; }  // per epoch

 private:
  i64 tokens_, length_, windows_;
  bool in_rows_;
  PhiloxKey key_;
};

// The image of `index` under a permutation of 0 .. n-1 that depends on key and stream only.
i64 permuted(i64 index, i64 n, PhiloxKey key, u64 stream);

}  // namespace stretto

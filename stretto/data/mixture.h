// Which sequence of which source is the n-th of a run over several sources: a function of weights, seed and n only.
//
//   MixtureOrder order({{books->tokens(), 0.7}, {code->tokens(), 0.3}}, 256, seed);
//   auto [source, first] = order.start_of((step - 1) * batch + row);
//
// A run goes through blocks in which every source has its share of sequences, in an order drawn per block. So the
// shares are exact over every block, and no counts are kept. A source that has been used up begins again, shuffled
// anew.
#pragma once
#include <vector>

#include "stretto/data/order.h"

namespace stretto {

class MixtureOrder {
 public:
  struct Source {
    i64 tokens = 0;
    double weight = 1;
    bool in_rows = false;  // see TokenSource
  };
  struct Start {
    std::size_t source = 0;
    i64 first = 0;  // token of that source
  };
  MixtureOrder(const std::vector<Source>& parts, i64 length, u64 seed);
  Start start_of(i64 sequence) const;
  i64 block() const { return ends_.back(); }                  // sequences
  const std::vector<i64>& shares() const { return shares_; }  // of a block, per source

 private:
  std::vector<i64> shares_, ends_;  // ends_: of each source's slots in a block
  std::vector<Order> orders_;
  PhiloxKey key_;
};

// Sequences per block for each weight: the smallest block that has every weight within a thousandth of itself, at most
// 65536, in which every source has at least one.
std::vector<i64> block_shares(const std::vector<double>& weights);

}  // namespace stretto

#include "stretto/data/order.h"

#include <algorithm>
#include <bit>

#include "stretto/base/error.h"

namespace stretto {

Order::Order(i64 tokens, i64 length, u64 seed, bool in_rows)
    : tokens_(tokens),
      length_(length),
      windows_(in_rows ? tokens / length : std::max<i64>(1, (tokens - length) / length)),
      in_rows_(in_rows),
      key_(philox_key(seed, "data order")) {
  STRETTO_ASSERT(length > 0 && tokens > length - in_rows, "too few tokens for one sequence");
}

i64 Order::first_token(i64 sequence) const {
  const i64 epoch = sequence / windows_;
  const i64 slack = in_rows_ ? 0 : std::min(tokens_ - 1 - windows_ * length_, length_ - 1);
  const u64 draw = u64(uniform_at(philox_key(key_[0] | u64(key_[1]) << 32, "offset"), epoch) * (slack + 1));
  return std::min<i64>(draw, slack) + length_ * permuted(sequence % windows_, windows_, key_, epoch);
}

// A Feistel network over the next even number of bits, walked until it lands below n again: at most four tries on
// average, and exactly invertible, hence a permutation.
i64 permuted(i64 index, i64 n, PhiloxKey key, u64 stream) {
  const int half = std::max<int>(1, (std::bit_width<u64>(n - 1) + 1) / 2);
  const u64 mask = (u64(1) << half) - 1;
  u64 x = index;
  do {
    u64 left = x >> half, right = x & mask;
    for (std::uint32_t round = 0; round < 4; ++round) {
      const Philox4 drawn =
          philox({std::uint32_t(right), round, std::uint32_t(stream), std::uint32_t(stream >> 32)}, key);
      const u64 next = left ^ (drawn[0] & mask);
      left = right;
      right = next;
    }
    x = left << half | right;
  } while (x >= u64(n));
  return x;
}

}  // namespace stretto

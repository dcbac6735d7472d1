#include "stretto/data/mixture.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"

namespace stretto {
namespace {

constexpr i64 largest_block = 65536;

// Rounds down, and gives what is left to the weights that lost the most. One is the least.
std::vector<i64> apportioned(const std::vector<double>& parts, i64 block) {
  std::vector<i64> shares;
  for (const double p : parts) shares.push_back(std::max<i64>(1, std::floor(p * block)));
  const auto lost = [&](std::size_t k) { return parts[k] * block - shares[k]; };
  for (i64 sum = std::accumulate(shares.begin(), shares.end(), i64(0)); sum != block; sum += sum < block ? 1 : -1) {
    std::size_t best = std::max_element(shares.begin(), shares.end()) - shares.begin();
    for (std::size_t k = 0; k < parts.size(); ++k)
      if (sum < block ? lost(k) > lost(best) : shares[k] > 1 && lost(k) < lost(best)) best = k;
    shares[best] += sum < block ? 1 : -1;
  }
  return shares;
}

}  // namespace

std::vector<i64> block_shares(const std::vector<double>& weights) {
  STRETTO_ASSERT(!weights.empty() && std::ssize(weights) <= largest_block / 2, "weights of a mixture");
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<double> parts;
  for (const double w : weights) parts.push_back(w / total);
  for (i64 block = weights.size(); block < largest_block; ++block) {
    i64 sum = 0;
    bool close = true;
    for (const double p : parts) {
      const double share = std::max(1.0, std::round(p * block));
      close = close && std::abs(share - p * block) <= 1e-3 * p * block;
      sum += static_cast<i64>(share);
    }
    if (close && sum == block) return apportioned(parts, block);
  }
  return apportioned(parts, largest_block);
}

MixtureOrder::MixtureOrder(const std::vector<Source>& parts, i64 length, u64 seed) : key_(philox_key(seed, "mixture")) {
  std::vector<double> weights;
  for (const Source& p : parts) weights.push_back(p.weight);
  shares_ = block_shares(weights);
  for (std::size_t k = 0; k < parts.size(); ++k) {
    ends_.push_back((k ? ends_.back() : 0) + shares_[k]);
    // Alone, a source is read in its own order.
    orders_.emplace_back(parts[k].tokens, length, parts.size() == 1 ? seed : hash_of(seed, "mixture", u64(k)),
                         parts[k].in_rows);
  }
}

// The slots of a block belong to the sources in order; a sequence takes the slot that a permutation gives it, and the
// slot says the rest.
MixtureOrder::Start MixtureOrder::start_of(i64 sequence) const {
  const i64 number = sequence / block(), slot = permuted(sequence % block(), block(), key_, number);
  const std::size_t source = std::upper_bound(ends_.begin(), ends_.end(), slot) - ends_.begin();
  const i64 index = number * shares_[source] + slot - (ends_[source] - shares_[source]);
  return {source, orders_[source].first_token(index)};
}

}  // namespace stretto

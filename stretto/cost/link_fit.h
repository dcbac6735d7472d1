// Links from measured messages and collectives: the latencies and bandwidths with which the cost model comes closest to
// what was measured.
//
//   std::vector<LinkSample> samples{{message_use(true, 1 << 20), 2.1e-4}, ...};
//   LinkFit f = fit_links(samples);
//   double predicted = seconds(f, samples[0].use);
#pragma once
#include <array>
#include <span>
#include <vector>

#include "stretto/cost/collective.h"
#include "stretto/cost/machine.h"

namespace stretto {

// What something asks of the links, in the order inside a node, between nodes: how many latencies and how many bytes,
// one after the other.
struct LinkUse {
  std::array<double, 2> latencies{}, bytes{};
};
LinkUse message_use(bool between, double bytes);
// As collective_seconds has it on nodes of so many ranks.
LinkUse collective_use(const CollectiveShape&, int ranks_per_node, std::span<const int> ranks);

struct LinkSample {
  LinkUse use;
  double seconds = 0;
};

struct LinkFit {
  Link inside, between;
  bool has_inside = false, has_between = false;  // whether any sample uses them
};
double seconds(const LinkFit&, const LinkUse&);

// Factors between measured and predicted are made as small as possible (squares of their logarithms are summed): small
// and large samples count alike, and so do too much and too little. Nothing is below 0.
LinkFit fit_links(std::span<const LinkSample>);

}  // namespace stretto

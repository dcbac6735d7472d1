// What messages and collectives between the ranks of a mesh take, and the links of the cost model that come closest.
//
//   LinkBench b = measure_links(Mesh{{"pipe", 2}, {"data", 2}});       // ranks are threads of this process
//   LinkBench b = measure_links(mesh, {}, peers);                      // every process calls it and gets the same
//   fmt::print("{}", b.str());
//
// Everything goes through the transports that training uses. All groups along an axis are busy at the same time, as
// they are in a step.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "stretto/base/hash.h"
#include "stretto/comm/peers.h"
#include "stretto/cost/link_fit.h"
#include "stretto/ir/layout.h"

namespace stretto {

struct LinkBenchOptions {
  std::optional<Link> link = {};                                                        // emulated
  std::vector<u64> sizes = {u64(1) << 10, u64(32) << 10, u64(1) << 20, u64(16) << 20};  // bytes
  int rounds = 7;                                                                       // the median counts
};

struct LinkRow {
  std::string what;   // "message", "all_reduce", ...
  std::string group;  // the axes along which it goes
  int members = 2, nodes = 1;
  u64 bytes = 0;    // of a message; of a member's whole operand or result, whichever is larger
  double sent = 0;  // bytes that a member has to send
  double seconds = 0;
  LinkUse use = {};
};

struct LinkBench {
  std::vector<LinkRow> rows;
  LinkFit fit;
  double memory_bandwidth = 0;  // bytes that a rank reads and writes per second while all others do
  int ranks = 1, nodes = 1;
  int ranks_per_node = 1;   // the most that a node has
  std::string str() const;  // as a table, with what the fitted links predict
};

// A mesh of one rank is refused: there is nothing to measure.
LinkBench measure_links(const Mesh&, const LinkBenchOptions& = {}, Peers* = nullptr);

}  // namespace stretto

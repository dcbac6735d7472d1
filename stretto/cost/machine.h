// What the hardware can do: one device, the links between devices, a cluster of nodes. Bytes, seconds, flops per
// second.
//
//   Cluster c{.inside = {2e-6, 50e9}, .between = {8e-6, 12e9}, .ranks_per_node = 8};
//   double t = link(c, 7, 8).seconds(1 << 20);   // from one node to the next
#pragma once
#include <limits>
#include <optional>

#include "stretto/cost/rates.h"
#include "stretto/cost/stack.h"

namespace stretto {

struct Machine {
  double flops = 50e9, memory_bandwidth = 10e9;  // of one thread
  double flops_bf16 = 0;            // of operations on bf16; 0: the same
  std::optional<Rates> rates = {};  // what kernels reach of these; none: all of it, a roofline
  int threads = 1;                  // of a rank, which share the work of its kernels
  // For kernels that read bf16, or others.
  double rate(bool of_bf16) const { return of_bf16 && flops_bf16 > 0 ? flops_bf16 : flops; }
  double peak(bool of_bf16) const { return threads * rate(of_bf16); }  // of all threads
  bool operator==(const Machine&) const = default;
};

// A kernel is bound by its arithmetic or by its memory traffic, whichever takes longer.
double seconds(const Machine&, double flops, double bytes, bool of_bf16 = false);

struct Link {
  double latency = 0, bandwidth = std::numeric_limits<double>::infinity();
  double seconds(double bytes) const { return latency + bytes / bandwidth; }
  bool operator==(const Link&) const = default;
};

struct Cluster {
  Machine machine = {};
  Link inside = {}, between = {};  // two ranks of one node; of two nodes
  int ranks_per_node = 1;
  // A collective over several nodes is one ring, as wide between nodes as a node's members have links together, and its
  // latency grows with the logarithm of its members. Else: rings within nodes and rings between them, one after the
  // other.
  bool one_ring = false;
  Stack stack = {};  // what the software does that is not in the program
  bool operator==(const Cluster&) const = default;
};

// The same link between any two ranks.
inline Cluster equal_links(const Link& l) { return {.inside = l, .between = l}; }

// A run of so many ranks on nodes that do not divide them takes as many of each as does, if that is more than half: of
// domains of 72, 256 ranks use 64 each.
Cluster placed(Cluster, int ranks);

// Ranks are numbered node by node. A rank reaches itself at no cost.
Link link(const Cluster&, int from, int to);

}  // namespace stretto

// A cluster as a TOML file: what `stretto bench comm` writes and `stretto simulate --cluster` reads.
//
//   ranks_per_node = 4            # ranks are numbered node by node
//   memory = 80e9                 # bytes that a rank has; left out: as much as it takes
//   [machine]                     # of a rank: flops, memory_bandwidth
//   [inside]                      # between two ranks of a node: latency in seconds, bandwidth in bytes per second
//   [between]                     # between two ranks of different nodes
//
//   ClusterFile file = read_cluster("cluster.toml");
//   check_ranks(file, 16);
//   double t = step_time(program, file.cluster).seconds;
#pragma once
#include <limits>
#include <string>
#include <vector>

#include "stretto/cost/machine.h"

namespace stretto {

struct ClusterFile {
  std::string name;  // for messages
  Cluster cluster;
  double memory = std::numeric_limits<double>::infinity();  // bytes per rank
  bool inside = true, between = true;                       // whether these links are given
};

// Overrides are "machine.flops=1e12", as on a command line. What is misspelt, of the wrong type or impossible is
// refused with file, line and key.
ClusterFile read_cluster(const std::string& path, const std::vector<std::string>& overrides = {});
// Reading this gives the same again; `comments` come first, one line each.
std::string cluster_toml(const ClusterFile&, const std::vector<std::string>& comments = {});

// Refused: so many ranks need a link that the file does not give.
void check_ranks(const ClusterFile&, int ranks);

}  // namespace stretto

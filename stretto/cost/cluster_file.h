// A cluster as a TOML file: what `stretto bench comm` writes and `stretto simulate --cluster` reads.
//
//   ranks_per_node = 4            # ranks are numbered node by node
//   memory = 80e9                 # bytes that a rank has; left out: as much as it takes
//   [machine]                     # of a rank: flops, memory_bandwidth
//   [inside]                      # between two ranks of a node: latency in seconds, bandwidth in bytes per second
//   [between]                     # between two ranks of different nodes
//
// Or of a device that is known (device.h), with the software on top of it (stack.h) and what is other than there:
//
//   device = "h100-sxm"           # of devices/, or a file beside this one
//   stack = "nemo"                # of stacks/, or a file; left out: stretto
//   ranks = 1024                  # how many there are, for `plan`
//   nic = 50e9                    # bytes per second of a rank between nodes; also: ranks_per_node, memory, factor,
//                                 # scores, [rates], [attention], [inside], [between] as in a device file
//
//   ClusterFile file = read_cluster("cluster.toml");
//   check_ranks(file, 16);
//   double t = step_time(program, file.cluster).seconds;
#pragma once
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "stretto/cost/device.h"
#include "stretto/cost/machine.h"

namespace stretto {

struct ClusterFile {
  std::string name;  // for messages
  Cluster cluster;
  double memory = std::numeric_limits<double>::infinity();  // bytes per rank
  bool inside = true, between = true;                       // whether these links are given
  std::optional<DeviceModel> device = {};                   // with what the file says over it
  std::optional<int> ranks = {};
};

// Overrides are "machine.flops=1e12", as on a command line. What is misspelt, of the wrong type or impossible is
// refused with file, line and key.
ClusterFile read_cluster(const std::string& path, const std::vector<std::string>& overrides = {},
                         ProductType products = ProductType::as_kept);
// Reading this gives the same again; `comments` come first, one line each.
std::string cluster_toml(const ClusterFile&, const std::vector<std::string>& comments = {});

// Refused: so many ranks need a link that the file does not give.
void check_ranks(const ClusterFile&, int ranks);

}  // namespace stretto

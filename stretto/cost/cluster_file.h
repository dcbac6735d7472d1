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
// Either may say what `stretto calibrate` fitted it to, of each the smallest and the largest:
//
//   [calibrated]
//   runs = 5
//   ranks = [2, 16]
//   context = [512, 2048]
//   width = [256, 1024]
//
//   ClusterFile file = read_cluster("cluster.toml");
//   check_ranks(file, 16);
//   double t = step_time(program, file.cluster).seconds;
//   fmt::print("{}\n", extrapolated(file, {.ranks = 16, .context = 4096, .width = 512}));
#pragma once
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "stretto/base/id.h"
#include "stretto/cost/device.h"
#include "stretto/cost/machine.h"
#include "stretto/formats/fields.h"

namespace stretto {

// What of a run tells whether others like it were measured.
struct RunSizes {
  i64 ranks = 1, context = 1, width = 1;  // context: positions per sequence
  bool operator==(const RunSizes&) const = default;
};
struct CalibratedOn {
  int runs = 0;
  RunSizes least = {}, most = {};
  void add(const RunSizes&);
  Field field() const;  // the section
  bool operator==(const CalibratedOn&) const = default;
};

struct ClusterFile {
  std::string name;  // for messages
  Cluster cluster;
  double memory = std::numeric_limits<double>::infinity();  // bytes per rank
  bool inside = true, between = true;                       // whether these links are given
  std::optional<DeviceModel> device = {};                   // with what the file says over it
  std::optional<int> ranks = {};
  std::optional<CalibratedOn> calibrated = {};
};

// Overrides are "machine.flops=1e12", as on a command line. What is misspelt, of the wrong type or impossible is
// refused with file, line and key.
ClusterFile read_cluster(const std::string& path, const std::vector<std::string>& overrides = {},
                         ProductType products = ProductType::as_kept);
// Reading this gives the same again; `comments` come first, one line each.
std::string cluster_toml(const ClusterFile&, const std::vector<std::string>& comments = {});

// Refused: so many ranks need a link that the file does not give.
void check_ranks(const ClusterFile&, int ranks);

// "extrapolated: 1024 ranks; it was calibrated on 2 to 16 ranks"; "" within what the file was calibrated on, or if it
// does not say.
std::string extrapolated(const ClusterFile&, const RunSizes&);

}  // namespace stretto

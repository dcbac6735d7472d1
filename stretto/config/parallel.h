// [parallel]: how a run is spread over ranks, and what it is run on.
//
//   ParallelSection p{.pipe = 4, .schedule = "zb-v"};
//   Parallel parallel = parallel_of(p, ProductType::as_kept);
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "stretto/compile/compile.h"
#include "stretto/cost/product_type.h"
#include "stretto/runtime/options.h"

namespace stretto {

struct ParallelSection {
  static constexpr int most_ranks = 1024, most_data = 1 << 16;  // along one axis; along `data`
  static constexpr int most_stages = 1 << 16;                   // of a pipeline
  int pipe = 1;                                                 // pipeline actors
  ParallelNames names = {};                        // data replicas tensor expert context depth sequence exchange zero
  Mesh mesh = {};                                  // axes of one's own, for `layout`
  Layout layout = {};                              // dims -> axes, over what the names say
  bool regather = false;                           // backward gathers again what forward gathered
  Reshard reshard = Reshard::microbatch;           // how long parameters that are cut stay gathered
  DType reduce = f32;                              // bf16: gradients are rounded before they are added up over ranks
  ExpertRows expert_rows = ExpertRows::automatic;  // how tokens get to experts that ranks share
  std::string cluster = {};                        // file of the machines and links that ranks are on
  double expert_room = 1.5;                        // for rows that are exchanged, times the mean
  Overlap overlap = Overlap::calls;                // what collectives inside of tasks go on beside
  std::string schedule = "1f1b";                   // a name or a CSV file
  int chunks = 0;                                  // stages per actor; 0: the schedule's default
  std::vector<int> stages = {};                    // pieces per stage; empty, in the file "auto": balanced by cost
  std::vector<Recompute> recompute = {};           // one for all stages or one per stage; empty, in the file "none"
  DeviceKind device = DeviceKind::cpu;
  std::optional<Link> link = {};  // messages take as long as over such a link
  Machine machine = {};           // what the emulated device is
  bool remote = false;            // not in the file: ranks are processes of MPI, which share no memory
  double timeout = 600;           // seconds without any progress after which the run is stopped; 0: never
  bool operator==(const ParallelSection&) const = default;
};

// All that is wrong with the schedule for so many microbatches; Fault::where is the place in it.
std::vector<Fault> schedule_faults(const ParallelSection&, int microbatches);

// `products`: what they are made in, for the rates of the cluster.
Parallel parallel_of(const ParallelSection&, ProductType products);
RunOptions options_of(const ParallelSection&);

}  // namespace stretto

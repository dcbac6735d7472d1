// [parallel]: how a run is spread over ranks, and what it is run on.
//
//   ParallelSection p;
//   p.pipe = 4;
//   Parallel parallel = parallel_of(p, ProductType::as_kept);
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "stretto/compile/compile.h"
#include "stretto/cost/product_type.h"
#include "stretto/runtime/options.h"

namespace stretto {

// What compile() and the runtime take, and what a file says in words of its own. Keys name the fields of either: a new
// one is a field there and a line in inner/keys.h.
struct ParallelSection : Parallel, RunOptions {
  static constexpr int most_ranks = 1024, most_data = 1 << 16;  // along one axis; along `data`
  static constexpr int most_threads = 256;                      // of a rank
  static constexpr int most_stages = 1 << 16;                   // of a pipeline
  int pipe = 1;                                                 // pipeline actors, before the axes of `mesh`
  std::string schedule = "1f1b";                                // a name or a CSV file
  std::string cluster = {};                                     // file of the machines and links that ranks are on
  std::string times = {};                                       // file of what pieces took; not of RunOptions::times
  double start_timeout = 600;  // seconds that processes wait for each other before the first step; 0: for ever
  using RunOptions::link;      // messages take as long as over such a link; and stages are cut for it
  using RunOptions::machine;   // what the emulated device is; and stages are cut for it
  int on_machine = 0;          // ranks on this machine, where it is known; 0: all
  ParallelSection() { timeout = 600, threads = 0; }
};

// All that is wrong with the schedule for so many microbatches and segments; Fault::where is the place in it.
std::vector<Fault> schedule_faults(const ParallelSection&, int microbatches, int segments);

// `products`: what they are made in, for the rates of the cluster.
// Of each rank: as the file says, or the cores of this machine over its ranks. One where ranks are on other machines,
// or on devices that have none.
int threads_of(const ParallelSection&);
int ranks_of(const ParallelSection&);
Parallel parallel_of(const ParallelSection&, ProductType products);
RunOptions options_of(const ParallelSection&);

}  // namespace stretto

// What a run is asked for. `Training` changes the numbers, `Parallel` must not: dropping it trains the same program
// serially.
//
//   Training training{.microbatches = 8, .clip = 1.0};
//   Parallel parallel{.mesh = {{"pipe", 2}}, .names = {.data = 2}, .schedule = "zb-h1"};
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "stretto/cost/machine.h"
#include "stretto/cost/measured_times.h"
#include "stretto/ir/layout.h"
#include "stretto/program/program.h"
#include "stretto/schedule/choice.h"
#include "stretto/shard/layout_of.h"
#include "stretto/step/recompute.h"
#include "stretto/trace/trace.h"

namespace stretto {

struct Training {
  int microbatches = 1;
  SegmentSizes segments = {};  // of a microbatch's sequences; one: whole ones
  u64 seed = 0;
  DType dtype = f32;
  std::vector<std::string> in_f32 = {};    // bf16: names of parameters, or parts of them, that are kept in f32
  std::vector<std::string> frozen = {};    // parameters that are not trained: names or globs, see TraceOptions
  std::optional<DType> frozen_dtype = {};  // that they are kept in; none: `dtype`
  double clip = 0;                         // of the global gradient norm; 0: none
  // Updates do not wait for the norm: the factor is taken to be 1, and a step for which it is not, or whose norm is not
  // finite, is undone and made again. The same numbers; memory for the parameters and state of two more steps.
  bool clip_late = false;
  bool skip_nonfinite = true;  // a loss or norm that is NaN or infinite: no parameter and no state changes
  // The same bits for every number of ranks along the batch and of microbatches: kernels see `leaf` rows at a time, and
  // their gradients are added in one balanced tree over the batch.
  bool exact = false;
  i64 leaf = 1;
};

// What collectives inside of tasks go on beside: nothing; other calls of the same action or overlap group; or also the
// products that read or make what they carry, cut into parts for it (chunks.h).
enum class Overlap : std::uint8_t { none, calls, chunks };

struct Parallel {
  Mesh mesh = {};                         // {{"pipe", 4}, {"x", 2}}: four pipeline actors of two ranks each
  ParallelNames names = {};               // the usual layouts; their axes follow those of `mesh`
  Layout layout = {};                     // dims -> axes; wins over what the names say
  Storage storage = {};                   // in addition to what the names say
  bool regather = false;                  // backward gathers again what forward gathered, instead of keeping it
  Reshard reshard = Reshard::microbatch;  // how long parameters that are cut over ranks stay gathered
  DType reduce = f32;                     // bf16: gradients are rounded before they are added up over ranks
  ScheduleChoice schedule = "1f1b";       // a name, a CSV file, a Schedule, or a function that makes one
  int chunks = 0;                         // stages per actor; 0: the schedule's default
  std::vector<int> stages = {};  // pieces per stage; empty: those with which a step is the shortest in simulation
  // What pieces took in a run of the same graph, for stages and for schedules that look at times; none: costs of ops.
  std::optional<MeasuredTimes> measured = {};
  Link link = {.latency = 2e-6, .bandwidth = 10e9};  // between actors, for balancing; the default is within one process
  std::optional<Link> within = {};                   // between an actor's ranks, for overlap and chunks; none: the same
  std::vector<Recompute> recompute = {};             // one for all stages, or one per stage; empty: none
  Machine machine = {};                              // of each rank, for balancing and overlap
  Overlap overlap = Overlap::calls;
  ExpertRows expert_rows = ExpertRows::automatic;
  // Where ranks lie, if it is known: for what is automatic, and for stages, overlap and chunks instead of machine
  // and links.
  std::optional<Cluster> cluster = {};
  double expert_room = 1.5;  // rows that a rank can take in an exchange, times the mean; more when a step needs more
  int threads = 1;           // of each rank, which share the work of its kernels
  bool remote = false;       // actors are processes: they share no memory
  Purpose purpose = Purpose::run;
};

}  // namespace stretto

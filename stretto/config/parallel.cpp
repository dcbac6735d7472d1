#include "stretto/config/parallel.h"

#include <algorithm>

#include "stretto/base/threads.h"
#include "stretto/cost/cluster_file.h"
#include "stretto/runtime/devices.h"
#include "stretto/schedule/choice.h"

namespace stretto {

std::vector<Fault> schedule_faults(const ParallelSection& s, int microbatches, int segments) {
  try {
    // A file has numbers of its own: that they are others than the run's is one fault, not one per missing action.
    if (names_a_file(s.schedule)) {
      const CheckedSchedule file = check_schedule(s.schedule, {.actors = 0, .microbatches = 0, .chunks = s.chunks});
      const int rows = file.schedule.actors(), cut = file.schedule.microbatches;
      if (file.validation.ok() && (rows != s.pipe || cut != microbatches))
        return {fault(s.schedule.find('\n') == s.schedule.npos ? s.schedule : "schedule",  // rows instead of a file
                      fmt::format("use parallel.pipe = {} and train.microbatches = {}", rows, cut),
                      "it is for {} actors and {} microbatches, the run has {} and {}", rows, cut, s.pipe,
                      microbatches)};
    }
    return check_schedule(s.schedule,
                          {.actors = s.pipe, .microbatches = microbatches, .chunks = s.chunks, .segments = segments})
        .validation.all_faults();
  } catch (const Error& e) {
    return e.faults();
  }
}

int ranks_of(const ParallelSection& s) {
  Mesh all = axes_of(s.names);
  all.insert(all.end(), s.mesh.begin(), s.mesh.end());
  return s.pipe * all.ranks();
}

int threads_of(const ParallelSection& s) {
  if (s.threads > 0) return type_of(s.device).threads ? s.threads : 1;
  if (!type_of(s.device).threads || !s.cluster.empty()) return 1;
  const int ranks = s.on_machine > 0 ? s.on_machine : ranks_of(s);
  return std::clamp(static_cast<int>(usable_cores().size()) / ranks, 1, ParallelSection::most_threads);
}

Parallel parallel_of(const ParallelSection& s, ProductType products) {
  Parallel p = s;
  p.schedule = s.schedule;
  p.threads = threads_of(s);
  if (s.pipe > 1) p.mesh.insert(p.mesh.begin(), {"pipe", s.pipe});
  if (!computes(s.device)) p.machine = s.machine;
  if (s.link) p.link = *s.link, p.cluster = equal_links(*s.link), p.cluster->machine = p.machine;
  if (!s.cluster.empty()) p.cluster = read_cluster(s.cluster, {}, products).cluster;
  if (!s.times.empty()) p.measured = read_times(s.times);
  p.machine.threads = p.threads;
  if (p.cluster) p.cluster->machine.threads = p.threads;
  return p;
}

RunOptions options_of(const ParallelSection& s) { return s; }

}  // namespace stretto

// How much of the collectives inside of tasks is hidden beside other work, on emulated ranks whose links are so slow
// that waiting for them in place takes 30% of a step. Messages between actors cost nothing here.
//   build/bench/overlap [share = 0.3] [measured = 1] [microbatches = 16] [schedule = all of them]
//
// hidden: of the time that waiting in place adds to a step, what overlap takes off again. bound: what any order of the
// calls of a turn (an action with the weight gradients after it, or an overlap group) could hide of its own
// collectives; weight gradients that are left to the next turn, pairs of turns and chunks can go beyond it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "rounds.h"
#include "stretto/base/text.h"
#include "stretto/models/family.h"
#include "stretto/program/overlap/region.h"
#include "stretto/simulate/step_time.h"
#include "stretto/stretto.h"

using namespace stretto;

namespace {

constexpr int vocab = 512;

// So fast that steps take a few seconds.
constexpr Machine small{.flops = 4e9, .memory_bandwidth = 4e10}, large{.flops = 2e11, .memory_bandwidth = 2e12};

struct Case {
  const char* name;
  ModelConfig model;
  Parallel parallel;
  Machine machine;
  Overlap overlap = Overlap::calls;
  int microbatches = 16;
};

ModelConfig experts() {
  return {.family = "mixtral",
          .layers = 8,
          .width = 128,
          .heads = 4,
          .context = 64,
          .vocab = vocab,
          .experts = 8,
          .top_k = 2,
          .capacity = 1.25};
}
ModelConfig dense() {
  return {.family = "llama", .layers = 8, .width = 512, .heads = 8, .context = 512, .vocab = vocab};
}

int ranks_of(const Parallel& p) { return p.names.expert * p.names.tensor * p.names.data; }

Compiled compiled(const Case& c, Overlap overlap, double bandwidth) {
  Parallel p = c.parallel;
  p.overlap = overlap;
  p.machine = c.machine;
  p.link = Link{};  // between actors
  p.within = Link{.latency = 0, .bandwidth = bandwidth};
  const int rows = c.microbatches * ranks_of(p);
  return compile(make_model(c.model, rows), sgd(), {.microbatches = c.microbatches}, p);
}
Cluster cluster(const Case& c, double bandwidth) {
  Cluster all{.machine = c.machine, .ranks_per_node = ranks_of(c.parallel)};
  all.inside.bandwidth = bandwidth;
  return all;
}
double simulated(const Case& c, const Compiled& x, double bandwidth) {
  return step_time(*x.program, cluster(c, bandwidth)).seconds;
}

// At which waiting in place takes so large a share of the step.
double bandwidth_for(const Case& c, double share) {
  const Compiled in_place = compiled(c, Overlap::none, 1e9);
  const double free = simulated(c, in_place, 1e18);
  double low = 1e3, high = 1e15;
  for (int i = 0; i < 100; ++i) {
    const double middle = std::sqrt(low * high);
    (simulated(c, in_place, middle) * (1 - share) > free ? low : high) = middle;
  }
  return high;
}

// No turn is shorter than its calls one after the other, nor than the longest chain of calls and collectives in it.
double bound(const Case& c, const Compiled& in_place, double bandwidth) {
  const Program& p = *in_place.program;
  WorkTimes times(p, cluster(c, bandwidth));
  CallFacts facts(p.mesh);
  double hidden = 0, all = 0;
  for (ActorId a : p.actors.ids())
    for (const TurnSpan turns : regions_of(p, a)) {
      const std::vector<Instruction> region = written_out(p.actors[a].code, turns);
      if (!has_collectives(p, region)) continue;
      RegionWork all_work = work_of(p, region, started_runs(p.actors[a]), facts);
      set_times(all_work, p, a, region, times);
      const auto& work = all_work.work;
      double computed = 0, waited = 0, longest = 0;
      IdVector<WorkId, double> ends(work.size(), 0);
      for (WorkId w : work.ids()) {
        for (WorkId before : work[w].after) ends[w] = std::max(ends[w], ends[before]);
        longest = std::max(longest, ends[w] += work[w].seconds);
        (work[w].link ? waited : computed) += work[w].seconds;
      }
      hidden += computed + waited - std::max(computed, longest), all += waited;
    }
  return hidden / all;
}

double measured(const Case& c, const Compiled& x, double bandwidth) {
  Trainer t(x, {.cluster = cluster(c, bandwidth), .device = DeviceKind::emulated, .machine = c.machine});
  const Batch batch = some_batch(c.microbatches * ranks_of(c.parallel), c.model.context, vocab);
  double best = 1e9;
  for (int i = 0; i < 3; ++i) best = std::min(best, t.step(batch).seconds);
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const double share = argc > 1 ? std::atof(argv[1]) : 0.3;
  const bool run = argc <= 2 || std::atoi(argv[2]) != 0;
  const int microbatches = argc > 3 ? std::atoi(argv[3]) : 16;
  const std::string_view only = argc > 4 ? argv[4] : "";
  std::vector<Case> cases;
  for (const char* schedule : {"1f1b", "zb-h1", "zb-v", "kimi-k2", "dualpipe-v", "dualpipe"})
    cases.push_back(
        {schedule, experts(), {.mesh = {{"pipe", 2}}, .names = {.expert = 2}, .schedule = schedule}, small});
  for (const char* schedule : {"1f1b", "zb-h1", "dualpipe-v"})
    for (const Overlap overlap : {Overlap::calls, Overlap::chunks})
      cases.push_back({schedule,
                       dense(),
                       {.mesh = {{"pipe", 2}}, .names = {.tensor = 4, .sequence = true}, .schedule = schedule},
                       large,
                       overlap});
  if (!only.empty()) std::erase_if(cases, [&](const Case& c) { return c.name != only; });
  for (Case& c : cases) c.microbatches = microbatches;
  std::vector<std::vector<std::string>> rows{{"run", "schedule", "overlap", "no links s", "in place s", "overlapped s",
                                              "hidden %", "bound %", "measured: in place s", "overlapped s", "hidden %",
                                              "measured/simulated"}};
  for (const Case& c : cases) {
    const double bandwidth = bandwidth_for(c, share);
    const Compiled in_place = compiled(c, Overlap::none, bandwidth), beside = compiled(c, c.overlap, bandwidth);
    const double free = simulated(c, in_place, 1e18), s = simulated(c, in_place, bandwidth),
                 o = simulated(c, beside, bandwidth);
    const auto hidden = [&](double in_place, double beside) {
      return fmt::format("{:.0f}", 100 * (in_place - beside) / (in_place - free));
    };
    std::vector<std::string> row{
        c.model.family + (c.parallel.names.expert > 1 ? " pipe=2 expert=2" : " pipe=2 tensor=4 sequence"),
        c.name,
        c.overlap == Overlap::chunks ? "chunks" : "calls",
        fmt::format("{:.3f}", free),
        fmt::format("{:.3f}", s),
        fmt::format("{:.3f}", o),
        hidden(s, o),
        c.overlap == Overlap::chunks ? "" : fmt::format("{:.0f}", 100 * bound(c, in_place, bandwidth))};
    if (run) {
      const double m = measured(c, in_place, bandwidth), n = measured(c, beside, bandwidth);
      row.insert(row.end(),
                 {fmt::format("{:.3f}", m), fmt::format("{:.3f}", n), hidden(m, n), fmt::format("{:.3f}", n / o)});
    }
    rows.push_back(row);
  }
  fmt::print("{}", table(rows));
}

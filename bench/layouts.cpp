// Layouts of the reference model on two cores, against two independent serial runs side by side: what the machine can
// do at all. Every rank has as much to do per step as one serial run. Interleaved rounds, because machines are noisy.
//   build/bench/layouts [rounds = 5]
//   build/bench/layouts overlap      how much of the gradients' sum is hidden behind backward, on emulated ranks
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "rounds.h"
#include "stretto/base/text.h"
#include "stretto/models/family.h"
#include "stretto/simulate/step_time.h"
#include "stretto/stretto.h"

using namespace stretto;

namespace {

constexpr int microbatches = 4, rows = 16, context = 256, vocab = 8192;  // of one rank

Compiled reference(const ParallelNames& names) {
  const ModelConfig config{
      .family = "gpt2", .layers = 4, .width = 512, .heads = 8, .context = context, .vocab = vocab, .tied = false};
  return compile(make_model(config, rows * names.data * names.tensor), adamw({.lr = 3e-4}),
                 {.microbatches = microbatches, .clip = 1}, {.names = names});
}

struct Run {
  const char* name;
  Trainer trainer;
  std::vector<double> speed = {}, share = {}, waiting = {};
  Run(const char* name, const ParallelNames& names) : name(name), trainer(reference(names)) {}
};

void speed(int rounds) {
  const Batch one_batch = some_batch(rows, context), batch = some_batch(2 * rows, context);
  const double tokens = double(rows) * context;
  Trainer one(reference({})), two(reference({}));
  std::vector<std::unique_ptr<Run>> runs;
  runs.push_back(std::make_unique<Run>("data=2", ParallelNames{.data = 2}));
  runs.push_back(std::make_unique<Run>("data=2 zero=1", ParallelNames{.data = 2, .zero = 1}));
  runs.push_back(std::make_unique<Run>("data=2 zero=2", ParallelNames{.data = 2, .zero = 2}));
  runs.push_back(std::make_unique<Run>("data=2 zero=3", ParallelNames{.data = 2, .zero = 3}));
  runs.push_back(std::make_unique<Run>("tensor=2", ParallelNames{.tensor = 2}));
  runs.push_back(std::make_unique<Run>("tensor=2 sequence", ParallelNames{.tensor = 2, .sequence = true}));
  std::vector<double> limits;
  for (int round = 0; round <= rounds; ++round) {  // the first is not counted
    const double limit = side_by_side(one, two, one_batch, tokens);
    if (round > 0) limits.push_back(limit);
    for (const auto& r : runs) {
      const StepResult result = r->trainer.step(batch);
      if (round == 0) continue;
      r->speed.push_back(2 * tokens / result.seconds);
      r->share.push_back(r->speed.back() / limit);
      r->waiting.push_back(100 * result.bubble);
    }
  }
  std::vector<std::vector<std::string>> lines{{"run", "tok/s", "of the limit", "waiting %"}};
  lines.push_back({"two serial runs", fmt::format("{:.0f}", median(limits)), "1", ""});
  for (const auto& r : runs)
    lines.push_back({r->name, fmt::format("{:.0f}", median(r->speed)), interval(r->share),
                     fmt::format("{:.1f}", median(r->waiting))});
  fmt::print("{}", table(lines));
}

// Gradients are summed (and parameters gathered) over a link on which that alone takes 30% of the step.
void overlap() {
  struct Case {
    const char* name;
    int microbatches;
    Parallel parallel;
  };
  const std::vector<int> eighths{5, 4, 4, 4, 4, 4, 4, 5};  // pieces per stage
  const std::vector<Case> cases{
      {"data=4", 1, {.names = {.data = 4}}},
      {"data=4", 2, {.names = {.data = 4}}},
      {"data=4 zero=3", 2, {.names = {.data = 4, .zero = 3}}},
      {"data=4 zero=3 reshard=step", 2, {.names = {.data = 4, .zero = 3}, .reshard = Reshard::step}},
      {"pipe=2 data=2 1f1b", 8, {.mesh = {{"pipe", 2}}, .names = {.data = 2}}},
      {"pipe=2 data=2 interleaved-1f1b",
       8,
       {.mesh = {{"pipe", 2}}, .names = {.data = 2}, .schedule = "interleaved-1f1b", .chunks = 4, .stages = eighths}},
      {"pipe=2 data=2 looped-bfs",
       8,
       {.mesh = {{"pipe", 2}}, .names = {.data = 2}, .schedule = "looped-bfs", .chunks = 4, .stages = eighths}},
      {"pipe=2 data=2 zb-h2", 4, {.mesh = {{"pipe", 2}}, .names = {.data = 2}, .schedule = "zb-h2"}},
  };
  std::vector<std::vector<std::string>> lines{
      {"run", "microbatches", "step s", "sums s", "hidden %", "simulated %", "exposed, points of the step apart"}};
  const double infinite = std::numeric_limits<double>::infinity();
  for (const Case& c : cases) {
    const int rows = 4 * c.microbatches, seq = 128;
    const Compiled compiled = compile(
        make_model({.family = "gpt2", .layers = 16, .width = 1024, .heads = 8, .context = seq, .vocab = 1024}, rows),
        sgd(), {.microbatches = c.microbatches}, c.parallel);
    // The ranks of an actor share a node: only sums go over its links, messages between actors cost nothing.
    const int replicas = compiled.program->ranks_per_actor();
    const Cluster unit{
        .machine = {.flops = 1e12, .memory_bandwidth = infinite}, .inside = {0, 1e9}, .ranks_per_node = replicas};
    const Cluster alone{.machine = unit.machine};
    const double wanted = 1, sums = 0.3 * wanted;
    Cluster cluster = unit;
    cluster.machine.flops *= step_time(*compiled.program, alone).seconds / wanted;
    const StepTime at_unit = step_time(*compiled.program, unit);
    cluster.inside.bandwidth *= (at_unit.sums + at_unit.gathers) / sums;
    const std::vector<std::int32_t> ids(std::size_t(rows) * seq, 1);
    const Batch batch{{"ids", Array::of<std::int32_t>(ids, {rows, seq})},
                      {"targets", Array::of<std::int32_t>(ids, {rows, seq})}};
    const auto measured = [&](const std::optional<Cluster>& links) {
      Trainer t(compiled, {.cluster = links, .device = DeviceKind::emulated, .machine = cluster.machine});
      double least = infinite;
      for (int i = 0; i < 8; ++i) least = std::min(least, t.step(batch).seconds);
      return least;
    };
    const double without = measured({}), with = measured(cluster), exposed = with - without;
    const double simulated = step_time(*compiled.program, cluster).seconds -
                             step_time(*compiled.program, {.machine = cluster.machine}).seconds;
    lines.push_back({c.name, fmt::format("{}", c.microbatches), fmt::format("{:.3f}", with),
                     fmt::format("{:.3f}", sums), fmt::format("{:.1f}", 100 * (1 - exposed / sums)),
                     fmt::format("{:.1f}", 100 * (1 - simulated / sums)),
                     fmt::format("{:.1f}", 100 * std::abs(exposed - simulated) / with)});
  }
  fmt::print("{}", table(lines));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "overlap") return overlap(), 0;
  speed(argc > 1 ? std::atoi(argv[1]) : 5);
}

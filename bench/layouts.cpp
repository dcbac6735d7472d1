// Layouts of the reference model on two cores, against two independent serial runs side by side: what the machine can
// do at all. Every rank has as much to do per step as one serial run. They take turns, because machines are noisy.
//   build/bench/layouts [rounds = 4]
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
#include "turns.h"

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
  ParallelNames names;
};
constexpr Run runs[] = {
    {"data=2", {.data = 2}},
    {"data=2 zero=1", {.data = 2, .zero = 1}},
    {"data=2 zero=2", {.data = 2, .zero = 2}},
    {"data=2 zero=3", {.data = 2, .zero = 3}},
    {"tensor=2", {.tensor = 2}},
    {"tensor=2 sequence", {.tensor = 2, .sequence = true}},
};

// Seconds that kernels took on all ranks since the trainers were made: matrix products, all others.
std::pair<double, double> kernel_seconds(std::initializer_list<const Trainer*> trainers) {
  std::pair<double, double> sum;
  for (const Trainer* t : trainers)
    for (int rank = 0; rank < t->compiled().program->ranks(); ++rank)
      for (const KernelTime& k : t->profile(rank)) (k.op == "contract" ? sum.first : sum.second) += k.seconds;
  return sum;
}

// Where the time of both cores goes while `step` makes a step: it returns the seconds of both, and those waited.
template <class Step>
std::vector<double> seconds_of(std::initializer_list<const Trainer*> trainers, const Step& step) {
  const auto [products, others] = kernel_seconds(trainers);
  const auto [total, waited] = step();
  const auto [products_after, others_after] = kernel_seconds(trainers);
  const double kernels = products_after - products + others_after - others;
  return {products_after - products, others_after - others, waited, total - waited - kernels};
}

void speed(int rounds) {
  const Batch one_batch = some_batch(rows, context), batch = some_batch(2 * rows, context);
  const double tokens = double(rows) * context;
  Trainer one(reference({}), {.profile = true}), two(reference({}), {.profile = true});
  std::vector<std::unique_ptr<Trainer>> trainers;
  for (const Run& r : runs)
    trainers.push_back(std::make_unique<Trainer>(reference(r.names), RunOptions{.profile = true}));
  std::vector<std::vector<double>> serial(4);
  const auto limit = [&] {
    double speed = 0;
    const std::vector<double> spent = seconds_of({&one, &two}, [&] {
      speed = side_by_side(one, two, one_batch, tokens);
      return std::pair(4 * tokens / speed, 0.0);
    });
    for (std::size_t k = 0; k < spent.size(); ++k) serial[k].push_back(spent[k]);
    return speed;
  };
  const auto once = [&](int r) {
    MeasuredTurn turn;
    turn.other = seconds_of({trainers[r].get()}, [&] {
      const StepResult result = trainers[r]->step(batch);
      turn.speed = 2 * tokens / result.seconds;
      return std::pair(2 * result.seconds, 2 * result.seconds * result.bubble);
    });
    return turn;
  };
  const Turns turns = take_turns(rounds, int(trainers.size()), 3, limit, once);
  std::vector<std::vector<std::string>> lines{
      {"run", "tok/s", "of the limit", "products s", "other kernels s", "waiting s", "rest s"}};
  const auto add = [&](const char* name, double speed, const std::string& share,
                       const std::vector<std::vector<double>>& spent) {
    lines.push_back({name, fmt::format("{:.0f}", speed), share});
    for (const std::vector<double>& part : spent) lines.back().push_back(fmt::format("{:.2f}", median(part)));
  };
  add("two serial runs", median(turns.limits), "1", serial);
  for (std::size_t r = 0; r < trainers.size(); ++r)
    add(runs[r].name, median(turns.speeds[r]), interval(turns.shares[r]), turns.others[r]);
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
  speed(argc > 1 ? std::atoi(argv[1]) : 4);
}

// The reference model as a pipeline on two cores, against two independent serial runs side by side: what the machine
// can do at all. Interleaved rounds, because machines are noisy.
//   build/bench/pipeline [rounds = 5]
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "rounds.h"
#include "stretto/base/text.h"
#include "stretto/models/family.h"
#include "stretto/simulate/replay.h"
#include "stretto/stretto.h"

using namespace stretto;

namespace {

constexpr int microbatches = 16, rows = 64, context = 256, vocab = 8192;

Compiled reference(const Parallel& parallel) {
  const ModelConfig config{
      .family = "gpt2", .layers = 4, .width = 512, .heads = 8, .context = context, .vocab = vocab, .tied = false};
  return compile(make_model(config, rows), adamw({.lr = 3e-4}), {.microbatches = microbatches, .clip = 1}, parallel);
}

struct Pipeline {
  const char* schedule;
  Trainer trainer;
  std::vector<double> speed = {}, share = {}, of_bound = {};  // tok/s; of the limit; simulated / measured time
  std::vector<double> idle = {}, idle_difference = {};
  explicit Pipeline(const char* name) : schedule(name), trainer(reference({.mesh = {{"pipe", 2}}, .schedule = name})) {}
};

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
  const Batch batch = some_batch(rows, context);
  const double tokens = double(rows) * context;
  Trainer one(reference({})), two(reference({}));
  std::vector<std::unique_ptr<Pipeline>> pipelines;
  for (const char* name : {"zb-v", "zb-h1", "1f1b"}) pipelines.push_back(std::make_unique<Pipeline>(name));
  std::vector<double> limits;
  for (int round = 0; round <= rounds; ++round) {  // the first is not counted
    const double limit = side_by_side(one, two, batch, tokens);
    if (round > 0) limits.push_back(limit);
    std::string line = fmt::format("round {}: two serial runs {:.0f} tok/s", round, limit);
    for (const auto& p : pipelines) {
      Timeline measured;
      const double speed = tokens / p->trainer.step(batch, &measured).seconds;
      line += fmt::format(", {} {:.0f}", p->schedule, speed);
      if (round == 0) continue;
      const Prediction simulated = replay(p->trainer.compiled().program->schedule, measured);
      p->speed.push_back(speed);
      p->share.push_back(speed / limit);
      p->of_bound.push_back(simulated.makespan / measured.makespan());
      double worst = 0;
      for (int a = 0; a < 2; ++a) worst = std::max(worst, std::abs(measured.bubble(a) - simulated.timeline.bubble(a)));
      p->idle.push_back(100 * measured.bubble());
      p->idle_difference.push_back(100 * worst);
    }
    fmt::print("{}\n", line);
    std::fflush(stdout);
  }
  std::vector<std::vector<std::string>> table_rows{
      {"run", "tok/s", "of the limit", "idle %", "simulated/measured time", "idle off by, points", "pieces per stage"}};
  table_rows.push_back({"two serial runs", fmt::format("{:.0f}", median(limits)), "1", "", "", "", ""});
  for (const auto& p : pipelines)
    table_rows.push_back({std::string("pipe=2 ") + p->schedule, fmt::format("{:.0f}", median(p->speed)),
                          interval(p->share), fmt::format("{:.1f}", median(p->idle)), interval(p->of_bound),
                          fmt::format("{:.1f}", median(p->idle_difference)),
                          fmt::format("{}", fmt::join(p->trainer.compiled().program->pieces_per_stage(), "+"))});
  fmt::print("\n{}", table(table_rows));
}

// The reference model as a pipeline on two cores, against two independent serial runs side by side: what the machine
// can do at all. They take turns, because machines are noisy.
//   build/bench/pipeline [rounds = 5]
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <tuple>

#include "rounds.h"
#include "stretto/base/text.h"
#include "stretto/models/family.h"
#include "stretto/simulate/replay.h"
#include "stretto/stretto.h"
#include "turns.h"

using namespace stretto;

namespace {

constexpr int microbatches = 16, rows = 32, context = 256, vocab = 8192;

Compiled reference(const Parallel& parallel) {
  const ModelConfig config{
      .family = "gpt2", .layers = 4, .width = 512, .heads = 8, .context = context, .vocab = vocab, .tied = false};
  return compile(make_model(config, rows), adamw({.lr = 3e-4}), {.microbatches = microbatches, .clip = 1}, parallel);
}

// A measured step, and the same step as it would have been without what the simulator does not know.
MeasuredTurn against_simulator(Trainer& t, const Batch& batch) {
  Timeline measured;
  const double speed = double(rows) * context / t.step(batch, &measured).seconds;
  const Prediction simulated = replay(t.compiled().program->schedule, measured);
  double worst = 0;
  for (int a = 0; a < 2; ++a) worst = std::max(worst, std::abs(measured.bubble(a) - simulated.timeline.bubble(a)));
  return {speed, {100 * measured.bubble(), simulated.makespan / measured.makespan(), 100 * worst}};
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
  const Batch batch = some_batch(rows, context);
  Trainer one(reference({})), two(reference({}));
  const char* const schedules[] = {"zb-v", "zb-h1", "1f1b"};
  std::vector<std::unique_ptr<Trainer>> pipelines;
  for (const char* s : schedules)
    pipelines.push_back(std::make_unique<Trainer>(reference({.mesh = {{"pipe", 2}}, .schedule = s})));
  const Turns turns = take_turns(
      rounds, int(pipelines.size()), int(pipelines.size()),
      [&] { return side_by_side(one, two, batch, double(rows) * context); },
      [&](int p) { return against_simulator(*pipelines[p], batch); });
  std::vector<std::vector<std::string>> lines{
      {"run", "tok/s", "of the limit", "idle %", "simulated/measured time", "idle off by, points", "pieces per stage"}};
  lines.push_back({"two serial runs", fmt::format("{:.0f}", median(turns.limits)), "1", "", "", "", ""});
  for (std::size_t p = 0; p < pipelines.size(); ++p) {
    const auto& [idle, of_bound, off] = std::tie(turns.others[p][0], turns.others[p][1], turns.others[p][2]);
    lines.push_back({fmt::format("pipe=2 {}", schedules[p]), fmt::format("{:.0f}", median(turns.speeds[p])),
                     interval(turns.shares[p]), fmt::format("{:.1f}", median(idle)), interval(of_bound),
                     fmt::format("{:.1f}", median(off)),
                     fmt::format("{}", fmt::join(pipelines[p]->compiled().program->pieces_per_stage(), "+"))});
  }
  fmt::print("{}", table(lines));
}

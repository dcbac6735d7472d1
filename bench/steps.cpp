// Steps that follow each other without a barrier, on emulated actors: seconds per step over many of them against the
// simulator's period; and with a barrier, against its step. Gradients are not clipped, so that an update waits for
// nobody.
//   build/bench/steps [actors = 8] [microbatches = 16] [steps = 10] [schedule = all of them]
// Steps with a barrier are all alike: three of them are measured.
#include <fmt/format.h>

#include <cstdlib>

#include "rounds.h"
#include "stretto/base/text.h"
#include "stretto/models/family.h"
#include "stretto/simulate/step_time.h"
#include "stretto/stretto.h"

using namespace stretto;

namespace {

constexpr Machine machine{.flops = 2e9, .memory_bandwidth = 2e10};
constexpr int context = 32, vocab = 256;

Compiled compiled(const char* schedule, int actors, int microbatches, double clip, bool late) {
  const ModelConfig model{
      .family = "llama", .layers = 2 * actors, .width = 128, .heads = 4, .context = context, .vocab = vocab};
  // Four half layers each; what comes before the first and after the last is small.
  const int stages = build_schedule(schedule, {.actors = actors, .microbatches = microbatches}).stages;
  std::vector<int> pieces(stages, 4 * actors / stages);
  ++pieces.front(), ++pieces.back();
  return compile(make_model(model, microbatches), sgd(),
                 {.microbatches = microbatches, .clip = clip, .clip_late = late, .skip_nonfinite = clip > 0},
                 {.mesh = {{"pipe", actors}}, .schedule = schedule, .stages = pieces, .machine = machine});
}

// From the end of the first to the end of the last: what fills the pipeline once is no part of a period.
double seconds_per_step(Trainer& t, const Batch& batch, int steps, bool barrier) {
  std::vector<double> ended;
  for (int next = 0; next <= steps || t.steps_under_way() > 0;) {
    while (next <= steps && t.room() && (!barrier || t.steps_under_way() == 0)) t.submit(batch), ++next;
    ended.push_back(t.wait().ended);
  }
  return (ended.back() - ended.front()) / steps;
}

}  // namespace

int main(int argc, char** argv) {
  const int actors = argc > 1 ? std::atoi(argv[1]) : 8, microbatches = argc > 2 ? std::atoi(argv[2]) : 16;
  const int steps = argc > 3 ? std::atoi(argv[3]) : 10;
  const std::string_view only = argc > 4 ? argv[4] : "";
  std::vector<std::vector<std::string>> rows{
      {"schedule", "clip", "step s", "period s", "measured with a barrier s", "/ step", "without s", "/ period"}};
  const Batch batch = some_batch(microbatches, context, vocab);
  struct Case {
    const char* schedule;
    double clip = 0;
    bool late = false;
  };
  const Case cases[] = {{"1f1b"}, {"zb-h1"}, {"zb-h2"}, {"zb-h2", 1}, {"zb-h2", 1, true}, {"zb-v"}, {"zb-v", 1, true}};
  for (const auto& [schedule, clip, late] : cases) {
    if (!only.empty() && only != schedule) continue;
    const Compiled c = compiled(schedule, actors, microbatches, clip, late);
    const Cluster cluster{.machine = machine};
    const double step = step_time(*c.program, cluster).seconds, period = step_period(*c.program, cluster);
    Trainer t(c, {.device = DeviceKind::emulated, .machine = machine});
    const double with = seconds_per_step(t, batch, 3, true), without = seconds_per_step(t, batch, steps, false);
    rows.push_back({schedule, fmt::format("{}{}", clip, late ? ", late" : ""), fmt::format("{:.4f}", step),
                    fmt::format("{:.4f}", period), fmt::format("{:.4f}", with), fmt::format("{:.3f}", with / step),
                    fmt::format("{:.4f}", without), fmt::format("{:.3f}", without / period)});
  }
  fmt::print("{} actors, {} microbatches, {} steps\n{}", actors, microbatches, steps, table(rows));
}

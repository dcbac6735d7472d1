// Every schedule on emulated actors, real runtime and transport around them, against its simulation.
//   build/bench/emulated [actors = 8] [microbatches = 32] [milliseconds per task = 20]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "stretto/base/text.h"
#include "stretto/models/family.h"
#include "stretto/simulate/simulate.h"
#include "stretto/stretto.h"

using namespace stretto;

int main(int argc, char** argv) {
  const int actors = argc > 1 ? std::atoi(argv[1]) : 8, microbatches = argc > 2 ? std::atoi(argv[2]) : 32;
  const double task = (argc > 3 ? std::atof(argv[3]) : 20) * 1e-3;
  struct Line {
    std::string name;
    double simulated, measured;
  };
  std::vector<Line> lines;
  std::vector<std::vector<std::string>> rows{{"schedule", "simulated s", "measured s", "measured/simulated"}};
  for (const BuilderEntry& b : schedule_builders()) {
    if (b.name == "seq-1f1b") continue;  // cannot be trained
    Request request{.actors = actors, .microbatches = microbatches};
    Schedule schedule;
    try {
      schedule = build_schedule(b.name, request);
    } catch (const Error& e) {
      fmt::print("{}: {}\n", b.name, e.what());
      continue;
    }
    // Two pieces per stage, so that every stage has an I.
    const int layers = schedule.stages;
    const Times times{.F = task * b.default_chunks(), .I = task * b.default_chunks(), .W = task * b.default_chunks()};
    Trainer t(
        compile(make_model({.family = "gpt2", .layers = layers, .width = 16, .heads = 1, .context = 8, .vocab = 16},
                           microbatches),
                sgd(), {.microbatches = microbatches}, {.mesh = {{"pipe", actors}}, .schedule = std::string(b.name)}),
        {.device = DeviceKind::emulated, .times = times});
    const std::vector<std::int32_t> ids(std::size_t(microbatches) * 8, 1);
    const Batch batch{{"ids", Array::of<std::int32_t>(ids, {microbatches, 8})},
                      {"targets", Array::of<std::int32_t>(ids, {microbatches, 8})}};
    const double simulated = simulate(schedule, {.times = times, .repeats = 0, .timeline = false}).makespan;
    double measured = t.step(batch).seconds;
    measured = std::min(measured, t.step(batch).seconds);
    lines.push_back({std::string(b.name), simulated, measured});
    rows.push_back({std::string(b.name), fmt::format("{:.3f}", simulated), fmt::format("{:.3f}", measured),
                    fmt::format("{:.4f}", measured / simulated)});
  }
  fmt::print("{} actors, {} microbatches, tasks of {:.1f} ms\n{}", actors, microbatches, task * 1e3, table(rows));
  // Schedules whose simulated times differ by more than rounding must come in the same order when measured.
  int swapped = 0, pairs = 0;
  double worst = 0;
  for (const Line& x : lines) {
    worst = std::max(worst, std::abs(x.measured / x.simulated - 1));
    for (const Line& y : lines)
      if (x.simulated < y.simulated * (1 - 1e-6)) ++pairs, swapped += x.measured >= y.measured;
  }
  fmt::print("largest difference {:.2f}%; {} of {} ordered pairs measured in the other order\n", 100 * worst, swapped,
             pairs);
}

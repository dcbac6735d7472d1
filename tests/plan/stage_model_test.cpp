// The quick models against the program model, which is the truth: the same facts, other depths.
#include "stretto/plan/stage_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>

#include <fmt/ranges.h>
#include "plan/problems.h"
#include "stretto/plan/prediction.h"
#include "stretto/plan/space.h"
#include "stretto/simulate/step_time.h"

namespace stretto {
namespace {

struct Difference {
  double seconds = 0, bytes = 0;
  std::string keys;
};

// By schedule against by program, of configurations that are drawn from all.
std::vector<Difference> differences(const PlanProblem& p, const PlanSpace& space, int count) {
  const Enumerated all = enumerate(p, space);
  Predictor predictor(p);
  std::mt19937 random(7);
  std::vector<Difference> found;
  while (std::ssize(found) < count) {
    const RunKeys& k = all.keys[random() % all.keys.size()];
    const Planned quick = predictor.by_schedule(k), exact = predictor.by_program(quick.keys);
    EXPECT_EQ(quick.refused, exact.refused);
    if (!exact.refused.empty()) continue;
    found.push_back({quick.seconds / exact.seconds - 1, quick.bytes / exact.bytes - 1, k.str()});
    if (std::getenv("STRETTO_PRINT"))
      fmt::print("{:7.2f}%  {:7.2f}%  {:.4f} s  {}\n", 100 * found.back().seconds, 100 * found.back().bytes,
                 exact.seconds, k.str());
  }
  return found;
}

double quantile(std::vector<Difference> all, double q, double Difference::*what) {
  std::vector<double> sizes;
  for (const Difference& d : all) sizes.push_back(std::abs(d.*what));
  std::sort(sizes.begin(), sizes.end());
  return sizes[std::min<std::size_t>(sizes.size() - 1, q * sizes.size())];
}

int how_many(int few) { return std::getenv("STRETTO_LONG") ? 200 : few; }

void show(const PlanProblem& p, RunKeys k) {
  Predictor predictor(p);
  const Planned quick = predictor.by_schedule(k);
  const Compiled c = compile_keys(p, quick.keys);
  const PlayedStep played = play_step(*c.program, p.cluster.cluster);
  const StageFacts& f = *predictor.facts(variant_of(p, k));
  const StageModel m(p, quick.keys, f);
  fmt::print("{}: quick {:.5f} (work {:.5f} bubble {:.5f} tail {:.5f} before {:.5f}) exact {:.5f}\n", k.str(),
             quick.seconds, quick.time.work, quick.time.bubble, quick.time.tail, f.before, played.time.seconds);
  fmt::print("  stages {}\n", fmt::join(quick.keys.stages, " "));
  for (StageId s : m.facts().ids()) {
    const PieceFacts& x = m.facts()[s];
    fmt::print("  stage {} F {:.5f} I {:.5f} B {:.5f} FW {:.5f} update {:.5f} sums {:.5f}\n", s.value, x.F, x.I, x.B,
               x.FW, x.update, x.sums);
  }
  fmt::print("  message {:.4g} exposed {:.5f} sums {:.5f}\n", f.message, played.time.exposed, played.time.sums);
  int n = 0;
  for (const Span& s : played.timeline.spans)
    if (++n < 400 && s.lane == Lane::compute)
      fmt::print("   actor {} {:.5f} {:.5f} ({:.5f}) {} {}\n", s.actor, s.start, s.end, s.end - s.start,
                 s.action ? fmt::format("{}{}.{}", std::string_view("FRIWB").substr(int(s.action->phase), 1),
                                        s.action->stage.value, s.action->microbatch.value)
                          : s.label,
                 s.waited);
  const MemoryParts& a = quick.memory;
  const Planned e = predictor.by_program(quick.keys);
  const MemoryParts& b = e.memory;
  fmt::print(
      "  quick GB params {:.3f} grads {:.3f} state {:.3f} act {:.3f} beside {:.3f} msg {:.3f} gaps {:.3f}\n  exact GB "
      "params {:.3f} grads {:.3f} state {:.3f} act {:.3f} beside {:.3f} msg {:.3f} gaps {:.3f}\n",
      a.params / 1e9, a.gradients / 1e9, a.state / 1e9, a.activations / 1e9, a.beside / 1e9, a.messages / 1e9,
      a.gaps / 1e9, b.params / 1e9, b.gradients / 1e9, b.state / 1e9, b.activations / 1e9, b.beside / 1e9,
      b.messages / 1e9, b.gaps / 1e9);
}
TEST(Debug, Show) {
  const PlanProblem p = large_llama(32, 128);
  show(p, {.pipe = 8,
           .data = 2,
           .tensor = 2,
           .sequence = true,
           .schedule = "zb-h1",
           .microbatches = 1,
           .recompute = Recompute::full});
  show(p, {.pipe = 4,
           .data = 4,
           .tensor = 2,
           .sequence = true,
           .schedule = "v-min",
           .chunks = 2,
           .microbatches = 4,
           .recompute = Recompute::selective});
  show(p, {.pipe = 2,
           .data = 2,
           .tensor = 4,
           .context = 2,
           .sequence = true,
           .schedule = "1f1b",
           .microbatches = 8,
           .recompute = Recompute::none});
  show(p, {.pipe = 2,
           .data = 4,
           .tensor = 4,
           .sequence = true,
           .zero = 2,
           .schedule = "1f1b",
           .microbatches = 8,
           .recompute = Recompute::none});
  show(p, {.pipe = 1,
           .data = 8,
           .tensor = 4,
           .sequence = true,
           .zero = 3,
           .schedule = "1f1b",
           .microbatches = 4,
           .recompute = Recompute::none});
}

TEST(StageModel, IsTheProgramModelForPlainStorage) {
  using R = Recompute;
  const PlanSpace space{.zero = {0, 1}, .recompute = {R::none, R::selective, R::full}};
  const auto all = differences(large_llama(32, 128), space, how_many(16));
  EXPECT_LT(quantile(all, 0.5, &Difference::seconds), 0.03);
  EXPECT_LT(quantile(all, 0.9, &Difference::seconds), 0.09);
  EXPECT_LT(quantile(all, 0.5, &Difference::bytes), 0.12);
}

}  // namespace
}  // namespace stretto

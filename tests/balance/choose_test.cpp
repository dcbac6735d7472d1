// Cuts are chosen by simulation: never slower than even ones, for every preset under every schedule.
#include "stretto/balance/choose.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "stretto/balance/pieces.h"
#include "stretto/compile/compile.h"
#include "stretto/models/family.h"
#include "stretto/schedule/builders.h"
#include "stretto/simulate/simulate.h"
#include "stretto/step/cost.h"

namespace stretto {
namespace {

constexpr Link near_link{.latency = 2e-6, .bandwidth = 10e9};

// A model's pieces by their ops' costs, of microbatches of one row.
CutProblem pieces_of(const ModelConfig& config) {
  const Compiled c = compile(make_model(config, 1), adamw());
  CutProblem p{.pieces = {piece_times(*c.program->step, {})}, .link = near_link};
  for (const Crossing& x : crossings(*c.program->step)) p.bytes.push_back(x.forward);
  return p;
}

// A step with these cuts, from the definition of a stage: it takes what its pieces take.
double seconds_with(const CutProblem& p, const std::vector<int>& stage_of, const Schedule& s) {
  SimulateOptions o{.link = [](int, int) { return near_link; }, .repeats = 0, .timeline = false};
  o.stages.assign(s.stages, {.F = 0, .I = 0, .W = 0});
  for (std::size_t i = 0; i < stage_of.size(); ++i) {
    StageCost& c = o.stages[StageId(stage_of[i])];
    const PieceTimes& t = p.pieces[0][i];
    c.F += t.F, c.I += t.I, c.W += t.W;
    if (i < p.bytes.size()) c.message_bytes = p.bytes[i];
  }
  return simulate(s, o).makespan;
}

std::vector<int> stages_of(const std::vector<int>& pieces_per_stage) {
  std::vector<int> of;
  for (std::size_t s = 0; s < pieces_per_stage.size(); ++s) of.insert(of.end(), pieces_per_stage[s], s);
  return of;
}
std::vector<int> equal_stages(int pieces, int stages) {
  std::vector<int> of;
  for (int i = 0; i < pieces; ++i) of.push_back(((i + 1) * stages - 1) / pieces);
  return of;
}

std::optional<Schedule> build(std::string_view name, int actors, int microbatches) {
  try {
    return build_schedule(name, {.actors = actors, .microbatches = microbatches});
  } catch (const Error&) {
    return {};
  }
}

TEST(ChooseCuts, NeverSlowerThanAnEvenCut) {
  int cases = 0;
  for (const Preset& preset : presets()) {
    const CutProblem p = pieces_of(preset.config);
    const int pieces = std::ssize(p.pieces[0]);
    for (const BuilderEntry& b : schedule_builders())
      for (const int actors : {4, 8}) {
        const std::optional<Schedule> s = build(b.name, actors, 2 * actors);
        if (!s || s->stages > pieces) continue;
        ++cases;
        const ChosenCuts c = choose_cuts(p, valid(*s), 20'000);  // it holds however little is tried
        const double chosen = seconds_with(p, c.stage_of, *s),
                     even = seconds_with(p, equal_stages(pieces, s->stages), *s);
        EXPECT_LE(chosen, even * (1 + 1e-9)) << preset.name << ", " << b.name << " on " << actors;
        EXPECT_NEAR(c.seconds, chosen, 1e-9 * chosen);
        EXPECT_NEAR(c.even_seconds, even, 1e-9 * even);
      }
  }
  EXPECT_GT(cases, 100);
}

// Several stages per actor: the busiest actor alone would give the head a stage of its own and let the others wait.
TEST(ChooseCuts, AsGoodAsByHandWithSeveralStagesPerActor) {
  ModelConfig config{.family = "llama", .layers = 8, .width = 512, .heads = 8, .context = 128, .vocab = 4096};
  const CutProblem p = pieces_of(complete(config));
  ASSERT_EQ(p.pieces[0].size(), 18u);
  for (const char* name : {"zb-v", "interleaved-1f1b", "looped-bfs"}) {
    const Schedule s = build_schedule(name, {.actors = 4, .microbatches = 8});
    const ChosenCuts c = choose_cuts(p, valid(s));
    EXPECT_LE(c.seconds, seconds_with(p, stages_of({3, 2, 2, 2, 3, 2, 2, 2}), s) * (1 + 1e-9)) << name;
  }
}

// 24 stages of a 96-layer model on 12 actors.
TEST(ChooseCuts, ManyLayersInChunksAreNotCutIntoLongAndShortOnes) {
  const CutProblem p{.pieces = {std::vector<PieceTimes>(194, {.F = 1, .I = 1, .W = 1})}};
  const Schedule s = build_schedule("interleaved-1f1b", {.actors = 12, .microbatches = 24});
  const ChosenCuts c = choose_cuts(p, valid(s));
  EXPECT_LE(c.seconds, c.even_seconds);
  std::vector<int> uneven(12, 1);  // every actor has as much to do, too
  uneven.resize(24, 15);
  uneven[22] = uneven[23] = 16;
  EXPECT_LT(c.seconds, 0.9 * seconds_with(p, stages_of(uneven), s));
}

TEST(ChooseCuts, RecomputeAndUpdatesCount) {
  const Schedule s = build_schedule("1f1b", {.actors = 2, .microbatches = 4});
  CutProblem p{.pieces = {std::vector<PieceTimes>(8, {.F = 1, .I = 1, .W = 1}),
                          std::vector<PieceTimes>(8, {.F = 1, .R = 1, .I = 1, .W = 1})},
               .kind = {0, 1}};
  std::vector<int> stage_of = choose_cuts(p, valid(s)).stage_of;  // the second stage makes everything again
  EXPECT_GT(std::count(stage_of.begin(), stage_of.end(), 0), std::count(stage_of.begin(), stage_of.end(), 1));
  p = {.pieces = {std::vector<PieceTimes>(8, {.F = 1, .I = 1, .W = 1})}};
  for (int i = 0; i < 4; ++i) p.pieces[0][i].update = 40;  // one less saves more than the longer stage costs
  stage_of = choose_cuts(p, valid(s)).stage_of;
  EXPECT_LT(std::count(stage_of.begin(), stage_of.end(), 0), std::count(stage_of.begin(), stage_of.end(), 1));
}

// Of equal pieces the even cut is the best, until the first stage may only have two of them.
TEST(ChooseCuts, OnlyWhatIsAllowed) {
  const Schedule s = build_schedule("1f1b", {.actors = 4, .microbatches = 8});
  CutProblem p{.pieces = {std::vector<PieceTimes>(16, {.F = 1, .I = 1, .W = 1})}};
  EXPECT_EQ(choose_cuts(p, valid(s)).stage_of, stages_of({4, 4, 4, 4}));
  p.allowed = [](const std::vector<int>& pieces) { return pieces[0] <= 2; };
  p.first = {2, 4, 4, 6};
  const ChosenCuts c = choose_cuts(p, valid(s));
  EXPECT_EQ(std::count(c.stage_of.begin(), c.stage_of.end(), 0), 2);
  double best = std::numeric_limits<double>::infinity();  // of all that is allowed
  for (int second = 1; second <= 12; ++second)
    for (int third = 1; second + third <= 13; ++third)
      best = std::min(best, seconds_with(p, stages_of({2, second, third, 14 - second - third}), s));
  EXPECT_NEAR(c.seconds, best, 1e-6 * best);
  EXPECT_NEAR(c.seconds, seconds_with(p, c.stage_of, s), 1e-6 * c.seconds);
}

}  // namespace
}  // namespace stretto

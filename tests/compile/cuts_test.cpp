// Cuts that compile() chooses.
#include <gmock/gmock.h>

#include <limits>

#include "stretto/balance/pieces.h"
#include "stretto/compile/scheduled.h"
#include "stretto/simulate/predict.h"
#include "support/message.h"
#include "support/small_models.h"

namespace stretto {
namespace {

std::vector<int> pieces(const Parallel& p) {
  return compile(make_model(tiny("gpt2", 4), 8), adamw(), {.microbatches = 8}, p).program->pieces_per_stage();
}

TEST(AutomaticStages, EveryPieceIsInAStage) {
  for (const char* schedule : {"1f1b", "zb-v", "interleaved-1f1b"})
    for (int actors : {1, 2, 3, 4}) {
      if (actors == 1 && std::string(schedule) != "1f1b") continue;
      int sum = 0;
      for (int n : pieces({.mesh = {{"pipe", actors}}, .schedule = schedule})) {
        EXPECT_GE(n, 1);
        sum += n;
      }
      EXPECT_EQ(sum, 1 + 2 * 4 + 1) << schedule << " on " << actors;
    }
}

Compiled gpt(const Parallel& p) { return compile(make_model(tiny("gpt2", 4), 8), adamw(), {.microbatches = 8}, p); }

// What a run of this pipeline would have measured.
MeasuredTimes measured_on(const Compiled& c, const std::vector<PieceTimes>& usual, const std::vector<double>& slower) {
  MeasuredTimes t{.graph = graph_hash(c)};
  const Schedule& s = c.program->schedule;
  for (const PieceId piece : c.program->stage_of.ids())
    for (const PipeId pipe : s.actor_of.ids()) {
      const int actor = c.program->actor_of(piece, pipe).value;
      const PieceTimes& u = usual[piece.value];
      t.pieces.push_back({int(piece.value), actor, u.F * slower[actor], u.I * slower[actor], u.W * slower[actor]});
    }
  return t;
}

double played(const Schedule& s, const std::vector<int>& cut, const std::vector<PieceTimes>& usual,
              const std::vector<double>& slower) {
  SimulateOptions o{.repeats = 0, .timeline = false};
  for (int stage = 0, piece = 0; stage < s.stages; ++stage) {
    PieceTimes sum;
    for (int i = 0; i < cut[stage]; ++i) sum += usual[piece++];
    const double by = slower[s.actor_of[PipeId(0)][StageId(stage)].value];
    o.stages.push_back({.F = sum.F * by, .I = sum.I * by, .W = sum.W * by});
  }
  return simulate(s, o).makespan;
}

void for_all_cuts(int pieces, int stages, std::vector<int>& cut, const std::function<void()>& visit) {
  if (stages == 1) return cut.push_back(pieces), visit(), cut.pop_back();
  for (int n = 1; n <= pieces - stages + 1; ++n) {
    cut.push_back(n);
    for_all_cuts(pieces - n, stages - 1, cut, visit);
    cut.pop_back();
  }
}

TEST(AutomaticStages, FollowMeasuredTimes) {
  const Parallel two{.mesh = {{"pipe", 2}}};
  const Compiled c = gpt(two);
  std::vector<PieceTimes> usual(10, {.F = 1, .I = 1, .W = 1});
  const auto cut_by = [&] {
    Parallel p = two;
    p.measured = measured_on(c, usual, {1, 1});
    return pieces(p);
  };
  EXPECT_EQ(cut_by(), (std::vector<int>{5, 5}));
  usual[9] = {.F = 9, .I = 9, .W = 9};
  EXPECT_EQ(cut_by(), (std::vector<int>{9, 1}));
}

// What one run measures on actors of which one is 30% slower cuts the next one nearly as well as trying everything.
TEST(AutomaticStages, MeasuredTimesKnowASlowActor) {
  for (const char* schedule : {"1f1b", "zb-v"})
    for (int actors : {2, 3})
      for (int slow : {0, actors - 1}) {
        Parallel p{.mesh = {{"pipe", actors}}, .schedule = schedule};
        const Compiled before = compile(make_model(tiny("gpt2", 5), 8), adamw(), {.microbatches = 8}, p);
        std::vector<PieceTimes> usual = piece_times(*before.program->step, {});
        for (PieceTimes& t : usual) t.F *= 1e4, t.I *= 1e4, t.W *= 1e4;  // seconds, so that messages take nothing
        std::vector<double> slower(actors, 1);
        slower[slow] = 1.3;
        p.measured = measured_on(before, usual, slower);
        const Compiled after = compile(make_model(tiny("gpt2", 5), 8), adamw(), {.microbatches = 8}, p);
        const Schedule& s = after.program->schedule;
        double best = std::numeric_limits<double>::infinity();
        std::vector<int> cut;
        for_all_cuts(after.program->stage_of.size(), s.stages, cut,
                     [&] { best = std::min(best, played(s, cut, usual, slower)); });
        const double chosen = played(s, after.program->pieces_per_stage(), usual, slower);
        EXPECT_LE(chosen, 1.03 * best) << schedule << " on " << actors << ", of which " << slow << " is slow";
      }
}

TEST(AutomaticStages, MeasuredTimesAreForZbAuto) {
  const auto rows = [](double w) {
    Parallel p{.mesh = {{"pipe", 4}}, .schedule = "zb-auto"};
    p.measured = MeasuredTimes{.pieces = {{0, 0, 1, 1, w}}};
    return schedule_of(p, 8);
  };
  EXPECT_EQ(rows(1), schedule_of({.mesh = {{"pipe", 4}}, .schedule = "zb-auto"}, 8));
  EXPECT_NE(rows(1), rows(0.1));
}

TEST(AutomaticStages, SlowLinkIsCountedWithItsBytes) {
  // The first boundary carries a narrow value, the others a wide one: a slow link moves the cut there.
  const Model model = [](Trace& t) {
    const Dim batch = t.batch("batch", 8), in{"in", 8}, narrow{"narrow", 2}, wide{"wide", 64};
    Tensor x = boundary(contract(t.input("x", {batch, in}), t.param("a", {in, narrow}), in));
    x = boundary(contract(x, t.param("b", {narrow, wide}), narrow));
    const Dim other = wide.like("other");
    x = boundary(rename(contract(x, t.param("c", {wide, other}), wide), other, wide));
    return mean_of(square(contract(x, t.param("d", {wide, narrow}), wide)));
  };
  const auto first = [&](const Parallel& p) {
    return compile(model, sgd(), {.microbatches = 2}, p).program->pieces_per_stage()[0];
  };
  EXPECT_GT(first({.mesh = {{"pipe", 2}}}), 1);
  EXPECT_EQ(first({.mesh = {{"pipe", 2}}, .link = {.latency = 0, .bandwidth = 1e3}}), 1);
}

// GPT-2's head is five layers of work. Whole, it is what all wait for; in parts, several stages per actor pay.
TEST(AutomaticStages, PartsOfTheHeadAreSpread) {
  for (const int actors : {4, 8}) {
    const auto seconds = [&](const char* schedule, i64 parts) {
      ModelConfig c = preset("gpt2");
      c.head_parts = parts;
      const Parallel p{.mesh = {{"pipe", actors}}, .schedule = schedule};
      return predict(*compile(make_model(c, 4 * actors), adamw(), {.microbatches = 4 * actors}, p).program).makespan;
    };
    for (const char* schedule : {"1f1b", "interleaved-1f1b", "zb-h1", "zb-v"})
      EXPECT_LT(seconds(schedule, 8), (actors == 8 ? 0.6 : 0.95) * seconds(schedule, 1)) << schedule << actors;
    EXPECT_LE(seconds("interleaved-1f1b", 8), seconds("1f1b", 8)) << actors;
    EXPECT_LE(seconds("zb-v", 8), seconds("zb-h1", 8)) << actors;
  }
}

TEST(AutomaticStages, TimesOfAnotherModelAreRefused) {
  const Parallel two{.mesh = {{"pipe", 2}}};
  const MeasuredTimes good = measured_on(gpt(two), std::vector<PieceTimes>(10, {.F = 1, .I = 1, .W = 1}), {1, 1});
  const auto message = [&](const std::function<void(MeasuredTimes&)>& change, const Parallel& p) {
    Parallel changed = p;
    changed.measured = good;
    changed.measured->file = "times.tsv";
    change(*changed.measured);
    return refusal_of([&] { gpt(changed); });
  };
  const std::string hint = "; hint: measure this run: stretto train RUN.toml --log.profile=FILE";
  EXPECT_EQ(message([](MeasuredTimes& t) { t.pieces.pop_back(); }, two),
            "[times.tsv] these times are of another model: they have no piece 9, and this one has 10" + hint);
  EXPECT_EQ(message([](MeasuredTimes& t) { t.pieces[3].piece = 12; }, two),
            "[times.tsv] these times are of another model: they have a piece 12, and this one has 10" + hint);
  EXPECT_THAT(message([](MeasuredTimes& t) { t.graph = 0x123; }, two),
              testing::HasSubstr("another model, batch or layout: a rank computed 0000000000000123 there and "));
  Parallel shared = two;
  shared.names.tensor = 2;
  EXPECT_THAT(message([](MeasuredTimes&) {}, shared), testing::HasSubstr("another model, batch or layout"));
}

}  // namespace
}  // namespace stretto

// Lifetimes that are put together from pieces against those of programs.
#include "stretto/plan/inner/turn_memory.h"

#include <gtest/gtest.h>

#include "plan/problems.h"
#include "stretto/plan/prediction.h"
#include "stretto/program/account.h"

namespace stretto {
namespace {

// What each actor holds at its fullest, with everything in place, and what its program does.
struct OfActor {
  double live = 0, packed = 0, of_program = 0, planned = 0;
};
std::vector<OfActor> held_in_place(const RunKeys& keys) {
  PlanProblem p = large_llama(32, 128);
  p.parallel.overlap = Overlap::none;
  Predictor predictor(p);
  const Planned quick = predictor.by_schedule(keys), exact = predictor.by_program(quick.keys);
  EXPECT_EQ(exact.refused, "");
  const StageModel model(p, quick.keys, predictor.facts_of_stages(quick.keys));
  const auto links = [](int, int) { return Link{}; };
  ArrangedPlayer player(model.pieces(), model.turn_options(), links, 1);
  Shapes shapes;
  const Schedule& s = shapes.of(quick.keys).schedule();
  const ArrangedRows rows = player.rows(s, {});
  const TurnMemory memory(s, player, rows, {});
  std::vector<OfActor> all;
  for (ActorId a : rows.ids()) {
    const ActorAccount account = stretto::account(*exact.program, a);
    all.push_back({memory.of(a).live(), memory.packed(a), double(account.live),
                   double(exact.program->actors[a].bytes[Arena::activations])});
  }
  return all;
}
void expect_equal(const RunKeys& keys) {
  for (const OfActor& a : held_in_place(keys)) {
    EXPECT_NEAR(a.live / a.of_program, 1, 0.001) << keys.str();
    EXPECT_NEAR(a.packed / a.planned, 1, 0.03) << keys.str();
  }
}

TEST(TurnMemory, IsTheProgramsForward) { expect_equal({.pipe = 4, .data = 8, .schedule = "1f1b", .microbatches = 8}); }

TEST(TurnMemory, KnowsWhatIsMadeAgain) {
  for (const Recompute r : {Recompute::selective, Recompute::layer, Recompute::full})
    expect_equal({.pipe = 4, .data = 8, .schedule = "1f1b", .microbatches = 8, .recompute = r});
}

TEST(TurnMemory, KnowsWhatWaitsForWeightGradients) {
  expect_equal({.pipe = 4, .data = 8, .schedule = "zb-h1", .microbatches = 8});
  expect_equal({.pipe = 4, .data = 8, .schedule = "zb-v", .chunks = 2, .microbatches = 8});
}

TEST(TurnMemory, KnowsParametersThatAreWholeAndGradientsOnTheirWay) {
  for (const int zero : {1, 2, 3})
    expect_equal({.pipe = 4, .data = 8, .zero = zero, .schedule = "1f1b", .microbatches = 8});
}

// A message may be written as soon as its reader is known to be there, long before it is read.
TEST(TurnMemory, KnowsMessagesThatWait) {
  expect_equal({.pipe = 8, .data = 4, .schedule = "gpipe", .microbatches = 16, .recompute = Recompute::full});
}

TEST(TurnMemory, KnowsTheOnlyStage) { expect_equal({.data = 16, .tensor = 2, .sequence = true, .microbatches = 4}); }

}  // namespace
}  // namespace stretto

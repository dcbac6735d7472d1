#include "stretto/plan/piece_work.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "plan/problems.h"
#include "stretto/models/family.h"
#include "stretto/plan/facts.h"
#include "stretto/simulate/prices.h"

namespace stretto {
namespace {

constexpr Part parts_of_turns[] = {Part::F, Part::R, Part::I, Part::W, Part::A};

// Two ranks that share every product, and what they do with the whole of a short model.
struct ShortTurns {
  PlanProblem problem;
  Compiled compiled;
  LayerWork work;
  explicit ShortTurns(const RunKeys& k, int head_parts = 1) : problem(large_llama(k.ranks(), 8)) {
    problem.model.head_parts = head_parts;
    Parallel parallel = parallel_of(problem, k);
    parallel.purpose = Purpose::facts;
    parallel.overlap = Overlap::none;
    compiled = compile(make_model(shortened(problem.model, 4), k.data * k.microbatches), problem.optimizer,
                       training_of(problem, k), parallel);
    work = layer_work(*compiled.program, problem.cluster.cluster, head_parts);
  }
  int pieces() const { return compiled.program->step->pieces; }
  const PartWork& of(int piece, Part part) const { return work.of(piece, pieces())[part]; }
};
RunKeys shared_products(Recompute r = Recompute::none) {
  return {.tensor = 2, .sequence = true, .microbatches = 2, .recompute = r};
}
int how_many_talk(const PartWork& p) {
  return std::ranges::count_if(p.calls, [](const PieceCall& c) { return c.link.has_value(); });
}
std::vector<std::size_t> chained_in(const PartWork& p) {
  std::vector<std::size_t> all;
  for (std::size_t c = 0; c < p.calls.size(); ++c)
    if (p.calls[c].chained) all.push_back(c);
  return all;
}

TEST(PieceWork, CallsTakeWhatTheirTaskDoes) {
  for (Recompute r : {Recompute::none, Recompute::selective}) {
    const ShortTurns s(shared_products(r));
    Prices prices(*s.compiled.program, s.problem.cluster.cluster);
    int tasks = 0;
    for (TaskId id : s.compiled.program->step->tasks.ids()) {
      const Task& t = s.compiled.program->step->tasks[id];
      if (!t.piece || std::ranges::find(parts_of_turns, t.part) == std::end(parts_of_turns)) continue;
      const double takes = prices.task(ActorId(0), id).seconds();
      EXPECT_GT(takes, 0);
      EXPECT_NEAR(s.of(t.piece->value, t.part).seconds() / takes, 1, 1e-9) << t.piece->value << " " << int(t.part);
      ++tasks;
    }
    EXPECT_GE(tasks, 3 * s.pieces() - 1);
  }
}

TEST(PieceWork, CollectivesHaveLinks) {
  const ShortTurns s(shared_products());
  for (int piece = 1; piece <= 2; ++piece) {
    EXPECT_EQ(how_many_talk(s.of(piece, Part::F)), 2) << "whole rows before its products, parts of them after";
    EXPECT_EQ(how_many_talk(s.of(piece, Part::W)), 0);
    EXPECT_GE(how_many_talk(s.of(piece, Part::I)), 2);
  }
  EXPECT_EQ(how_many_talk(ShortTurns({.data = 2, .microbatches = 2}).of(1, Part::F)), 0);
}

// Its norm, and the sum with what it was given.
TEST(PieceWork, PassesGoFromPieceToPiece) {
  const ShortTurns s(shared_products());
  for (int piece = 1; piece <= 2; ++piece)
    for (Part part : {Part::F, Part::I}) {
      const PartWork& p = s.of(piece, part);
      EXPECT_EQ(p.gives + 1, p.calls.size());
      EXPECT_THAT(chained_in(p), testing::ElementsAre(0u, p.gives)) << piece << " " << int(part);
    }
  EXPECT_THAT(chained_in(s.of(0, Part::F)), testing::IsEmpty()) << "nothing comes before an embedding";
  EXPECT_THAT(chained_in(s.of(0, Part::W)), testing::ElementsAre(0u)) << "which has no input gradient";
  EXPECT_THAT(chained_in(s.of(9, Part::I)), testing::IsEmpty()) << "nor after a head";
}

TEST(PieceWork, CallsComeAfterEarlierOnes) {
  for (Recompute r : {Recompute::none, Recompute::selective, Recompute::full}) {
    const ShortTurns s(shared_products(r));
    for (int piece = 0; piece < s.pieces(); ++piece)
      for (Part part : parts_of_turns) {
        const PartWork& p = s.of(piece, part);
        for (std::size_t c = 0; c < p.calls.size(); ++c)
          for (const PieceCall::After& x : p.calls[c].after) {
            EXPECT_LE(x.part, part);
            EXPECT_LT(x.call, x.part == part ? c : s.of(piece, x.part).calls.size());
          }
      }
    const auto& gradient = s.of(2, Part::W).calls.front().after;
    EXPECT_TRUE(std::ranges::any_of(gradient, [](const auto& x) { return x.part == Part::I; })) << "whole rows of it";
  }
}

TEST(PieceWork, OnlyWhatIsMadeAgainHasCalls) {
  const ShortTurns none(shared_products()), some(shared_products(Recompute::selective)),
      all(shared_products(Recompute::full));
  EXPECT_THAT(none.of(2, Part::R).calls, testing::IsEmpty());
  EXPECT_THAT(chained_in(some.of(2, Part::R)), testing::IsEmpty()) << "from what was kept of the same piece";
  EXPECT_GT(all.of(2, Part::R).seconds(), 0.5 * all.of(2, Part::F).seconds());
  EXPECT_THAT(chained_in(all.of(2, Part::R)), testing::Contains(0u));
  EXPECT_THAT(chained_in(all.of(9, Part::R)), testing::Not(testing::IsEmpty())) << "also of a head";
}

TEST(PieceWork, ParametersThatAreCutAreGathered) {
  const ShortTurns whole({.data = 2, .zero = 2, .microbatches = 2}), cut({.data = 2, .zero = 3, .microbatches = 2});
  EXPECT_FALSE(whole.of(1, Part::F).gathers() || cut.of(1, Part::W).gathers());
  EXPECT_TRUE(cut.of(1, Part::F).gathers() && cut.of(1, Part::I).gathers());
  EXPECT_FALSE(cut.of(1, Part::A).calls.empty()) << "scattered gradients are added up";
}

TEST(PieceWork, AHeadHasParts) {
  const ShortTurns s(RunKeys{.microbatches = 2}, 4), whole(RunKeys{.microbatches = 2});
  ASSERT_EQ(s.work.head.size(), 4u);
  EXPECT_EQ(s.pieces(), 1 + 8 + 4);
  double all = 0;
  for (const PieceWork& part : s.work.head) all += part[Part::I].seconds();
  EXPECT_GT(all, 0.5 * whole.of(9, Part::I).seconds());
  EXPECT_EQ(&s.work.of(30, 35), &s.work.period[1]) << "of a model of 15 layers";
  EXPECT_EQ(&s.work.of(31, 35), &s.work.head[0]);
}

}  // namespace
}  // namespace stretto

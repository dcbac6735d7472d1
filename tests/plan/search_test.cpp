#include "stretto/plan/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "plan/problems.h"
#include "stretto/plan/explain.h"

namespace stretto {
namespace {

using testing::Contains;
using testing::HasSubstr;

Each on_two_threads() {
  return [](std::size_t n, const std::function<void(std::size_t)>& function) {
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
      for (std::size_t i; (i = next++) < n;) function(i);
    };
    std::thread other(work);
    work();
    other.join();
  };
}

TEST(MakePlan, IsTheSameEveryTimeWhateverTheThreads) {
  const PlanProblem p = small_llama(4, 8);
  const PlanSpace space{.context = {1}, .schedules = {"1f1b", "zb-h1"}, .recompute = {Recompute::none}};
  const Plan a = make_plan(p, space, {.compiled = 3}),
             b = make_plan(p, space, {.compiled = 3, .each = on_two_threads()});
  ASSERT_EQ(a.best.size(), b.best.size());
  for (std::size_t i = 0; i < a.best.size(); ++i) {
    EXPECT_EQ(a.best[i].keys, b.best[i].keys);
    EXPECT_EQ(a.best[i].seconds, b.best[i].seconds);
    EXPECT_EQ(a.best[i].bytes, b.best[i].bytes);
  }
}

TEST(MakePlan, CompilesNothingTwice) {
  const Plan plan = make_plan(small_llama(8, 32), {.context = {1}, .schedules = {"1f1b", "zb-h1", "zb-v"}});
  std::set<RunKeys> compiled;
  for (const Planned& x : plan.scored)
    if (x.exact == Exactness::program) {
      EXPECT_TRUE(compiled.insert(x.keys).second) << x.keys.str();
    }
  EXPECT_GT(compiled.size(), 5u);
  EXPECT_EQ(std::ssize(compiled), plan.counts.compiled);
}

// Every configuration of a small space by its program: nothing is much better than what is chosen.
TEST(MakePlan, ChoosesNearlyTheBestOfAll) {
  const PlanProblem p = small_llama(4, 16);
  const PlanSpace space{.context = {1}, .zero = {0, 1}, .schedules = {"1f1b", "zb-v"}, .recompute = {Recompute::none}};
  const Plan plan = make_plan(p, space);
  ASSERT_FALSE(plan.best.empty());
  const Enumerated all = enumerate(p, space);
  ASSERT_GT(all.keys.size(), 50u);
  double best = 1e30;
  std::string who;
  for (const RunKeys& k : all.keys)
    if (const Planned x = compiled_plan(p, k); x.refused.empty() && x.seconds < best) best = x.seconds, who = k.str();
  EXPECT_LE(plan.best.front().seconds, 1.02 * best) << who << " against " << plan.best.front().keys.str();
}

// What Narayanan et al. (SC21, table 1) ran: 39.1 billion parameters on 512 ranks, tensor = 8, pipe = 2.
TEST(MakePlan, IsAsGoodAsWhatExpertsChose) {
  PlanProblem p = problem_for(
      {.family = "gpt2", .layers = 48, .width = 8192, .heads = 64, .context = 2048, .vocab = 51200, .pad_vocab = 1024},
      512, 1536);
  const RunKeys experts{
      .pipe = 2, .data = 32, .tensor = 8, .sequence = true, .microbatches = 12, .recompute = Recompute::layer};
  const PlanSpace space{.context = {1}, .zero = {0, 1}, .schedules = {"1f1b", "interleaved-1f1b"}};
  const Plan plan = make_plan(p, space, {.compiled = 2, .each = on_two_threads()});
  ASSERT_FALSE(plan.best.empty());
  const Planned theirs = compiled_plan(p, experts);
  ASSERT_EQ(theirs.refused, "");
  EXPECT_LE(plan.best.front().seconds, 1.01 * theirs.seconds) << plan.best.front().keys.str();
}

TEST(MakePlan, CountsAddUp) {
  const PlanProblem p = small_llama(8, 16);
  const Plan plan = make_plan(p, {}, {.quick = true});
  const Counts& c = plan.counts;
  EXPECT_EQ(c.tried, std::ssize(enumerate(p, {}).keys));
  EXPECT_EQ(c.tried, c.states + c.memory + c.bound + c.fit + c.refused);
  EXPECT_EQ(c.compiled, 0);
  for (const Planned& x : plan.best) EXPECT_NE(x.exact, Exactness::program);
}

TEST(MakePlan, NothingIsLargerThanARankHas) {
  PlanProblem p = small_llama(4, 8);
  const PlanSpace space{.schedules = {"1f1b", "zb-h1"}};
  const Plan rich = make_plan(p, space, {.quick = true});
  p.cluster.memory = 0.85 * rich.best.front().bytes;  // states are most of it
  const Plan poor = make_plan(p, space);
  ASSERT_FALSE(poor.best.empty());
  for (const Planned& x : poor.best) EXPECT_LE(x.bytes, p.cluster.memory);
  EXPECT_GT(poor.counts.memory + poor.counts.states, 0);
}

TEST(MakePlan, WhenNothingFitsTheNearestIsShown) {
  PlanProblem p = small_llama(2, 16);
  p.cluster.memory = 20e6;
  const Plan plan = make_plan(p, {});
  EXPECT_TRUE(plan.best.empty());
  ASSERT_TRUE(plan.nearest);
  EXPECT_GT(plan.nearest->bytes, p.cluster.memory);
  const Error e = nothing_fits(p, plan, {"8 ranks fit"});
  EXPECT_THAT(e.what(), HasSubstr("nothing fits 20 MB on 2 ranks: the closest needs"));
  EXPECT_THAT(e.what(), HasSubstr("optimizer state"));
  EXPECT_THAT(e.what(), HasSubstr("hint: 8 ranks fit"));
}

// Their states are all alike, so what lies beside them decides.
TEST(MakePlan, TheNearestIsTheSmallestOfThoseWithTooLargeStates) {
  PlanProblem p = large_llama(4, 8);
  p.cluster.memory = 1e9;
  const PlanSpace space{.context = {1}, .zero = {0, 3}, .schedules = {"1f1b"}};
  const Plan plan = make_plan(p, space);
  EXPECT_EQ(plan.counts.states, plan.counts.tried);
  ASSERT_TRUE(plan.nearest);
  for (const RunKeys& k : enumerate(p, space).keys) {
    if (k.rows(p.batch) > 1 || k.recompute != Recompute::full) continue;
    const Planned x = compiled_plan(p, k);
    EXPECT_LE(plan.nearest->bytes, 1.05 * x.bytes) << plan.nearest->keys.str() << " against " << k.str();
  }
}

TEST(MakePlan, SaysWhyNotTheOthers) {
  const Plan plan = make_plan(small_llama(8, 16), {}, {.quick = true});
  ASSERT_FALSE(plan.others.empty());
  for (const Alternative& a : plan.others) EXPECT_GE(a.best.seconds, 0.99 * plan.best.front().seconds);
  EXPECT_THAT(why_not(plan), Contains(HasSubstr("pipe=")));
}

TEST(NothingLegal, NamesWhatExcludesEachOther) {
  const PlanProblem p = small_llama(12, 16);
  const auto says = [&](const PlanSpace& space) { return std::string(nothing_legal(p, space).what()); };
  EXPECT_THAT(says({.tensor = {8}}), HasSubstr("tensor = 8 does not divide 12 ranks; hint: use 8 or 16 ranks"));
  EXPECT_THAT(says({.pipe = {2}, .data = {1}, .tensor = {2}, .context = {1}, .expert = {1}}),
              HasSubstr("the given axes make 4 ranks and there are 12"));
  EXPECT_THAT(says({.pipe = {1}, .tensor = {1}, .context = {1}}),
              HasSubstr("data = 12 does not divide a batch of 16; hint: use train.batch = 12 or 24"));
  EXPECT_TRUE(enumerate(p, {.pipe = {1}, .tensor = {1}, .context = {1}}).keys.empty());
}

TEST(NothingLegal, NamesKeysThatDoNotGoWithAnyMesh) {
  const PlanProblem p = small_llama(4, 16);
  const auto says = [&](const PlanSpace& space) {
    EXPECT_TRUE(enumerate(p, space).keys.empty());
    return std::string(nothing_legal(p, space).what());
  };
  EXPECT_THAT(says({.data = {1}, .zero = {2}}),
              HasSubstr("on 4 ranks: zero = 2 cuts over the data axis, and data is 1; hint: leave one of these keys"));
  EXPECT_THAT(says({.pipe = {4}, .chunks = {3}, .schedules = {"zb-v"}}), HasSubstr("zb-v has 2 chunks, not 3"));
  EXPECT_THAT(says({.pipe = {4}, .microbatches = {4}, .schedules = {"dualpipe-v"}}),
              HasSubstr("dualpipe-v does not exist for 4 actors and 4 microbatches"));
}

TEST(NothingLegal, APrimeNumberOfRanksThatNothingDivides) {
  const PlanProblem p = small_llama(31, 16);
  EXPECT_TRUE(enumerate(p, {}).keys.empty());
  EXPECT_THAT(nothing_legal(p, {}).what(), HasSubstr("no mesh of 31 ranks is possible"));
}

// What is said to be possible is, and nothing larger; far below a large prime, too.
TEST(NothingLegal, TheMostRanksThatArePossible) {
  for (const int ranks : {31, 1009, 100003}) {
    PlanProblem p = small_llama(ranks, 16);
    const std::string said = nothing_legal(p, {}).what();
    const std::size_t at = said.find("hint: ") + 6;
    ASSERT_THAT(said, HasSubstr(" ranks are possible, and "));
    p.ranks = std::stoi(said.substr(at));
    EXPECT_FALSE(enumerate(p, {}).keys.empty()) << said;
    for (int more = p.ranks + 1; more < std::min(ranks, p.ranks + 20); ++more) {
      p.ranks = more;
      EXPECT_TRUE(enumerate(p, {}).keys.empty()) << more << ": " << said;
    }
  }
}

// Short sequences are cut only when that is asked for, and it is said so.
TEST(NothingLegal, AContextAxisThatIsSearchedOnlyWhereItIsGiven) {
  const PlanProblem p = small_llama(4, 1);
  const PlanSpace space{.pipe = {1}, .tensor = {1}};
  ASSERT_TRUE(enumerate(p, space).keys.empty());
  EXPECT_THAT(nothing_legal(p, space).what(), HasSubstr("hint: give parallel.context = 4"));
  EXPECT_FALSE(enumerate(p, {.pipe = {1}, .tensor = {1}, .context = {4}}).keys.empty());
}

TEST(Score, RefusedOnesHaveTheirReason) {
  const PlanProblem p = small_llama(4, 16);
  const std::vector<Planned> r = score(p, {{.data = 4},
                                           {.data = 2},
                                           {.data = 2, .tensor = 2, .sequence = true, .microbatches = 4},
                                           {.pipe = 2, .data = 2, .schedule = "zb-v", .chunks = 1}});
  EXPECT_EQ(r[0].refused, "");
  EXPECT_EQ(r[0].exact, Exactness::program);
  EXPECT_EQ(r[1].refused, "its mesh has 2 ranks, not 4");
  EXPECT_EQ(r[2].refused, "");
  EXPECT_EQ(r[3].refused, "zb-v has 2 chunks, not 1");
}

// Layers like GPT-3's over slow links. Cuts that are even by stages leave actors of a V uneven.
TEST(MakePlan, TheCompilersOwnCutsAreNotFaster) {
  PlanProblem p = problem_for(
      {.family = "gpt2", .layers = 16, .width = 12288, .heads = 96, .context = 2048, .vocab = 51200, .tied = false}, 16,
      32);
  p.training = {};
  p.cluster = {.cluster = {.machine = {.flops = 300e12, .memory_bandwidth = 1e18},
                           .inside = {3e-6, 300e9},
                           .between = {10e-6, 25e9},
                           .ranks_per_node = 4},
               .memory = 80e9};
  const PlanSpace space{.pipe = {4},
                        .data = {2},
                        .tensor = {2},
                        .zero = {1},
                        .microbatches = {16},
                        .schedules = {"zb-v"},
                        .recompute = {Recompute::none}};
  RunKeys keys = make_plan(p, space).best.at(0).keys;
  const double planned = compiled_plan(p, keys).seconds;
  keys.stages.clear();
  EXPECT_LE(planned, compiled_plan(p, keys).seconds);
}

// What the stages of a schedule are thought to take may be wrong by some percent: others are compiled, too.
TEST(MakePlan, TheBestOfOtherSchedulesIsCompiledToo) {
  const PlanSpace space{.pipe = {4}, .context = {1}, .schedules = {"1f1b", "eager-1f1b", "zb-h1"}};
  std::set<std::string_view> compiled;
  for (const Planned& x : make_plan(small_llama(8, 32), space, {.compiled = 2}).best)
    if (x.exact == Exactness::program) compiled.insert(x.keys.schedule);
  EXPECT_EQ(compiled.size(), 3u);
}

}  // namespace
}  // namespace stretto

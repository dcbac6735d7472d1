// Cuts that compile() chooses.
#include <gtest/gtest.h>

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

TEST(AutomaticStages, FollowMeasuredTimes) {
  const std::vector<double> measured{1, 1, 1, 1, 1, 1, 1, 1, 1, 9};
  EXPECT_EQ(pieces({.mesh = {{"pipe", 2}}, .profile = measured}), (std::vector<int>{9, 1}));
  EXPECT_EQ(pieces({.mesh = {{"pipe", 2}}, .profile = std::vector<double>(10, 1.0)}), (std::vector<int>{5, 5}));
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

TEST(AutomaticStages, BadProfilesAreRefused) {
  const auto message = [](std::vector<double> profile) {
    return refusal_of([&] { pieces({.mesh = {{"pipe", 2}}, .profile = std::move(profile)}); });
  };
  EXPECT_EQ(message({1, 2}),
            "[profile] it has 2 pieces and the model 10; hint: measure this model, with these boundaries");
  EXPECT_EQ(message({1, 1, 1, 1, 1, 1, 1, 1, 1, -1}),
            "[profile] a piece takes -1 seconds; hint: times are finite and not negative");
}

}  // namespace
}  // namespace stretto

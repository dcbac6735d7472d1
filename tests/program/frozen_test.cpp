// Parameters that no task writes: where they lie, who shares them, and that nothing writes there.
#include "stretto/program/frozen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/small_models.h"

namespace stretto {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Program on(const Mesh& mesh, std::vector<std::string> cut) {
  Program p;
  p.mesh = mesh;
  p.actors.resize(2);
  p.frozen_axes = std::move(cut);
  return p;
}
std::vector<int> keepers(const Program& p, const std::vector<int>& nodes = {}) {
  std::vector<int> all;
  for (int r = 0; r < p.ranks(); ++r) all.push_back(keeper(p, r, nodes));
  return all;
}

TEST(Frozen, RanksThatHaveTheSameShareOneCopy) {
  const Mesh mesh{{"data", 2}, {"tensor", 2}};
  EXPECT_THAT(keepers(on(mesh, {})), ElementsAre(0, 0, 0, 0, 4, 4, 4, 4));
  EXPECT_THAT(keepers(on(mesh, {"tensor"})), ElementsAre(0, 1, 0, 1, 4, 5, 4, 5));
  EXPECT_THAT(keepers(on(mesh, {"data"})), ElementsAre(0, 0, 2, 2, 4, 4, 6, 6));
  EXPECT_THAT(keepers(on(mesh, {"data", "tensor"})), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(sharers(on(mesh, {})), 4);
  EXPECT_EQ(sharers(on(mesh, {"tensor"})), 2);
}

TEST(Frozen, OnEveryMachineThereIsOne) {
  const Program p = on({{"data", 4}}, {});
  EXPECT_THAT(keepers(p, {0, 0, 1, 1, 1, 1, 2, 2}), ElementsAre(0, 0, 2, 2, 4, 4, 6, 6));
  EXPECT_THAT(keepers(p, {0, 1, 0, 1, 0, 1, 2, 3}), ElementsAre(0, 1, 0, 1, 4, 5, 6, 7));
}

Compiled tuned(const Parallel& parallel = {}) {
  return compile(make_model(tiny("gpt2", 2), 8), adamw(), {.microbatches = 2, .frozen = {"*", "!h.1.up"}}, parallel);
}

TEST(Frozen, AreThoseThatNoTaskWrites) {
  const Compiled c = tuned();
  const IdVector<ParamId, bool> frozen = frozen_params(*c.program->step);
  const ActorProgram& a = c.program->actors[ActorId(0)];
  for (ParamId i : c.params.ids()) {
    EXPECT_EQ(frozen[i], !c.params[i].trained()) << c.params[i].name;
    EXPECT_EQ(a.place_of(i)->arena, frozen[i] ? Arena::frozen : Arena::params) << c.params[i].name;
  }
  const Compiled forward = compile_forward(c.model, c.training, {});
  EXPECT_EQ(forward.program->actors[ActorId(0)].bytes[Arena::params], 0u) << "nothing is trained";
}

TEST(Frozen, AreCutAsTheLayoutSays) {
  EXPECT_THAT(tuned({.names = {.data = 2}}).program->frozen_axes, ElementsAre());
  EXPECT_THAT(tuned({.names = {.data = 2, .tensor = 2}}).program->frozen_axes, ElementsAre("tensor"));
  EXPECT_THAT(tuned({.names = {.data = 2, .tensor = 2, .zero = 3}}).program->frozen_axes,
              ElementsAre("data", "tensor"));
}

TEST(Frozen, WhatIsSharedIsSaidAndCountedOnce) {
  const auto shared = [](const ParallelNames& names) { return shared_str(*tuned({.names = names}).program); };
  EXPECT_EQ(shared({}), "");
  EXPECT_EQ(shared({.tensor = 2}), "");
  EXPECT_THAT(shared({.data = 4}), HasSubstr(" of frozen weights, shared by 4 ranks"));
  EXPECT_THAT(shared({.data = 2, .tensor = 2}), HasSubstr(" of frozen weights in 2 parts, each shared by 2 ranks"));
  EXPECT_THAT(tuned({.names = {.data = 4}}).program->memory_str(), HasSubstr("Totals are without the "));
}

TEST(Frozen, AWriteIsAFault) {
  Program p = *tuned().program;
  ASSERT_TRUE(verify(p).empty());
  ActorProgram& a = p.actors[ActorId(0)];
  a.bytes[Arena::frozen] = a.bytes[Arena::gradients] + a.bytes[Arena::frozen];
  for (Slot& s : a.slots)
    if (s.arena == Arena::gradients) s.arena = Arena::frozen;
  const std::vector<Fault> faults = verify(p);
  ASSERT_FALSE(faults.empty());
  EXPECT_THAT(faults[0].what, HasSubstr("into arena frozen, which ranks share"));
}

}  // namespace
}  // namespace stretto

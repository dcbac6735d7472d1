#include "stretto/compile/scheduled.h"

#include <gmock/gmock.h>

#include "stretto/stretto.h"

namespace stretto {
namespace {
using testing::HasSubstr;

TEST(Scheduled, IsCheckedForTraining) {
  const Schedule s = schedule_of({.mesh = {{"pipe", 2}}, .schedule = "zb-h1"}, 4);
  EXPECT_EQ(s.rows.size(), 2u);
  EXPECT_EQ(s.microbatches, 4);
  EXPECT_THROW(schedule_of({.mesh = {{"pipe", 0}}}, 4), Error);
  try {
    schedule_of({.mesh = {{"pipe", 2}}, .schedule = "chimera"}, 1);
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("pipe"));
  }
}

TEST(Scheduled, ForwardPartHasTheSameOrder) {
  const Schedule s = schedule_of({.mesh = {{"pipe", 2}}, .schedule = "1f1b"}, 3), f = forward_part(s);
  ASSERT_EQ(f.rows.size(), 2u);
  for (const Row& row : f.rows) {
    ASSERT_EQ(row.size(), 3u);
    for (std::size_t i = 0; i < row.size(); ++i) EXPECT_EQ(row[i].phase, Phase::F);
  }
}

TEST(Scheduled, ForwardPartOfAnotherNumberOfMicrobatches) {
  const Schedule f = forward_part(schedule_of({.mesh = {{"pipe", 2}}, .schedule = "interleaved-1f1b"}, 4), 2);
  EXPECT_EQ(f.microbatches, 2);
  for (const Row& row : f.rows) EXPECT_EQ(row.size(), 2u * 2u) << "two stages, two microbatches";
}

TEST(Scheduled, TooManyTasksAreRefusedBeforeTheyAreMade) {
  const Model model = [](Trace& t) -> Loss {
    const Dim batch = t.batch("batch", 1 << 22), in{"in", 4}, out{"out", 4};
    const Tensor h = boundary(contract(t.input("x", {batch, in}), t.param("w", {in, out}), in));
    return cross_entropy(h, t.ids("y", {batch}), out);
  };
  try {
    compile(model, sgd(), {.microbatches = 1 << 22});
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(),
                 "[schedule] 4194304 microbatches of a model of 2 pieces are 25165824 tasks in a step, and at most "
                 "3000000 are possible; hint: use at most 500000 microbatches of more rows each");
    EXPECT_THAT(e.faults()[0].subjects, testing::ElementsAre("train.microbatches"));
  }
  check_tasks(1000, 1000, true);
  EXPECT_THROW(check_tasks(1000, 1001, true), Error);
  check_tasks(1000, 3000, false);
}

}  // namespace
}  // namespace stretto

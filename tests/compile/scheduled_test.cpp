#include "stretto/compile/scheduled.h"

#include <gmock/gmock.h>

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

}  // namespace
}  // namespace stretto

#include "stretto/exports/torch_schedule.h"

#include <gmock/gmock.h>

#include "stretto/schedule/builders.h"
#include "stretto/schedule/csv.h"

namespace stretto {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// What torch's own loader and lowering accept: bench/torch_schedules.py holds them against it.
TEST(TorchSchedules, AllOfOnePipeAreTaken) {
  for (const BuilderEntry& b : schedule_builders()) {
    const Schedule s =
        build_schedule(b.name, {.actors = 4, .microbatches = 8, .segments = b.name == "seq-1f1b" ? 2 : 1});
    const bool other = b.name == "dualpipe" || b.name == "chimera" || b.name == "seq-1f1b";
    EXPECT_EQ(refused_by_torch(s).empty(), !other) << b.name;
  }
}

TEST(TorchSchedules, SayWhatIsRefused) {
  const auto two = refused_by_torch(build_schedule("dualpipe", {.actors = 4, .microbatches = 8}));
  ASSERT_THAT(two, SizeIs(1));
  EXPECT_EQ(two[0].str(),
            "[--for torch] 'dualpipe' has two pipes, and torch 2.15 has each stage on one rank, with all microbatches; "
            "hint: use one pipe that folds, e.g. dualpipe-v or zb-v");
  const auto cut = refused_by_torch(build_schedule("seq-1f1b", {.actors = 2, .microbatches = 4, .segments = 2}));
  ASSERT_THAT(cut, SizeIs(1));
  EXPECT_THAT(cut[0].str(), HasSubstr("cuts microbatches into 2 segments"));
  const auto again = refused_by_torch(read_csv("0F0,0R0,0B0\n", "mine.csv"));
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_THAT(again[0].str(), HasSubstr("[actor 0, position 1, 0R0] torch 2.15 has no recompute actions"));
  const auto group = refused_by_torch(read_csv("0F0,(0F1;0I0)OVERLAP_F_B,0W0,0B1\n", "mine.csv"));
  ASSERT_THAT(group, SizeIs(1));
  EXPECT_THAT(group[0].str(), HasSubstr("overlaps one F with one B"));
}

TEST(TorchSchedules, HaveNoMarks) {
  Schedule s = read_csv("0UNSHARD,0F0,0B0,0REDUCE_GRAD\n", "mine.csv");
  EXPECT_EQ(torch_csv(s), "0F0,0B0\n");
}

}  // namespace
}  // namespace stretto

#include "stretto/runtime/records.h"

#include <gtest/gtest.h>

namespace stretto {
namespace {

struct Recorded {
  std::unique_ptr<Device> device = cpu_device();
  Records r{*device};
};

TEST(Records, RunNamesTheMessageThatItWaitedForLongest) {
  Recorded recorded;
  Records& r = recorded.r;
  r.keep(true, 2);
  r.begin_step();
  r.waited(0.3, TransferId(1));
  r.waited(0.3, TransferId(2));
  r.waited(0.5, TransferId(3));  // less than the two together, and still the longest
  r.waited(0.25);
  r.run(InstructionId(4), [] {});
  r.run(InstructionId(5), [] {});
  ASSERT_EQ(r.list().size(), 2u);
  EXPECT_DOUBLE_EQ(r.list()[0].waited, 1.35);
  EXPECT_EQ(r.list()[0].message, TransferId(3));
  EXPECT_EQ(r.list()[1].instruction, InstructionId(5));
  EXPECT_EQ(r.list()[1].waited, 0);  // that was before the run before it
  EXPECT_FALSE(r.list()[1].message);
}

TEST(Records, WaitsOfAStepAreAddedUpWhetherItIsRecordedOrNot) {
  for (bool on : {false, true}) {
    Recorded recorded;
    Records& r = recorded.r;
    r.keep(on, 1);
    for (int step = 0; step < 2; ++step) {
      r.begin_step();
      r.waited(1, TransferId(0));
      r.run(InstructionId(0), [&] { r.waited_within(2); });
      r.waited(4);
      EXPECT_DOUBLE_EQ(r.waited(), 7);
      EXPECT_EQ(r.list().size(), on ? 1u : 0u);
    }
  }
}

TEST(Records, CollectiveIsOpenUntilItsEndIsSeen) {
  Recorded recorded;
  Records& r = recorded.r;
  EXPECT_FALSE(r.begin(InstructionId(0), DeviceLane::gradients));  // nobody asked for records
  r.keep(true, 2);
  r.begin_step();
  const std::optional<RecordId> open = r.begin(InstructionId(1), DeviceLane::gradients);
  r.run(InstructionId(2), [] {});
  ASSERT_TRUE(open);
  r.end(*open);
  EXPECT_EQ(r.list()[0].end, 0);  // nobody knows before the step is over
  r.settle();
  EXPECT_GE(r.list()[0].end, r.list()[1].end);
  EXPECT_GT(r.list()[0].start, 0);
}

}  // namespace
}  // namespace stretto

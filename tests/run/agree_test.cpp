#include "stretto/run/inner/agree.h"

#include <gmock/gmock.h>

namespace stretto {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(Agree, TheSameIsNoFault) {
  EXPECT_THAT(disagreements({"a = 1\nb = 2\n", "a = 1\nb = 2\n"}), IsEmpty());
  EXPECT_THAT(disagreements({"a = 1\n"}), IsEmpty());
}

TEST(Agree, WhatDiffersIsNamedWithItsRank) {
  const auto faults = disagreements({"a = 1\nb = 2\n", "a = 1\nb = 2\n", "a = 3\nc = 4\n"});
  ASSERT_THAT(faults, SizeIs(3));
  EXPECT_EQ(faults[0].where, "rank 2");
  EXPECT_EQ(faults[0].what, "a is 3, and on rank 0 it is 1");
  EXPECT_EQ(faults[1].what, "b is not set, and on rank 0 it is 2");
  EXPECT_EQ(faults[2].what, "c is 4, and on rank 0 it is not set");
}

TEST(Agree, ARankThatDiffersInEverythingSaysTheFirstFew) {
  std::string one, other;
  for (int i = 0; i < 50; ++i) one += fmt::format("k{} = 1\n", i), other += fmt::format("k{} = 2\n", i);
  EXPECT_THAT(disagreements({one, other, one}), SizeIs(4));
}

TEST(Agree, ADescriptionHasWhatMatters) {
  const RunConfig config =
      read_run("", {"--model.layers=1", "--model.width=16", "--model.heads=2", "--model.context=16",
                    "--data.path=" STRETTO_SOURCE "/examples/data/tales.txt", "--log.dir=here"});
  const Prepared prepared = prepare(config);
  const std::string text = description(config, prepared, 7);
  for (const char* line : {"executable = ", "program = ", "steps done before = 7", "data = ", "train.seed = 1",
                           "optimizer.lr = ", "parallel.pipe = 1"})
    EXPECT_THAT(text, HasSubstr(line));
  EXPECT_EQ(text.find("here"), std::string::npos) << "where a rank writes is its own affair";
  RunConfig other = config;
  other.log.dir = "there";
  EXPECT_EQ(description(other, prepared, 7), text);
}

}  // namespace
}  // namespace stretto

#include "stretto/run/verify.h"

#include <gmock/gmock.h>

#include <cstring>

#include "support/files.h"

namespace stretto {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Verify : public testing::Test {
 protected:
  Verify() { folder_.write("text.txt", test::sentences(200)); }
  RunConfig config(std::vector<std::string> more = {}) const {
    std::vector<std::string> all{"--model.layers=2",    "--model.width=32",
                                 "--model.heads=2",     "--model.context=16",
                                 "--train.batch=8",     "--train.microbatches=4",
                                 "--optimizer.lr=0.01", "--parallel.pipe=2",
                                 "--model.dropout=0.1", "--data.path=" + (folder_ / "text.txt").string()};
    all.insert(all.end(), more.begin(), more.end());
    return read_run("", all);
  }
  test::Folder folder_;
};

TEST_F(Verify, PipelinesAgreeBitForBit) {
  for (const std::string schedule : {"gpipe", "1f1b", "zb-h1", "zb-v"}) {
    const Verification v = verify(config({"--parallel.schedule=" + schedule}));
    EXPECT_FALSE(v.first) << v.first->str();
    EXPECT_EQ(v.tolerance, 0);
    EXPECT_EQ(v.steps.size(), 3u);
    EXPECT_GT(v.tensors, 50);
    EXPECT_THAT(v.str(), HasSubstr("compared bit for bit: schedule " + schedule + " and the serial run agree"));
  }
}

TEST_F(Verify, ExactTrainingAgreesBitForBitAcrossRanks) {
  const std::vector<std::string> two{"--parallel.data=2", "--train.microbatches=2"};
  EXPECT_GT(verify(config(two)).tolerance, 0);
  std::vector<std::string> exact = two;
  exact.push_back("--train.exact=true");
  const Verification v = verify(config(exact));
  EXPECT_EQ(v.tolerance, 0);
  EXPECT_FALSE(v.first) << v.first->str();
  exact.push_back("--parallel.tensor=2");  // that is another order of sums
  EXPECT_GT(verify(config(exact)).tolerance, 0);
}

TEST_F(Verify, OtherOrdersOfAdditionAgreeToTolerance) {
  const test::Folder folder;
  folder.write("down.csv", "0F0,0F1,0F2,0F3,0B3,0B2,0B1,0B0\n1F0,1F1,1F2,1F3,1B3,1B2,1B1,1B0\n");
  const std::string down = "--parallel.schedule=" + (folder / "down.csv").string();
  const Verification v = verify(config({down}));
  EXPECT_EQ(v.tolerance, 1e-5);
  EXPECT_FALSE(v.first) << v.first->str();
  EXPECT_GT(v.steps[0].gradient.difference, 0);
  EXPECT_LT(v.steps[0].gradient.difference, 1e-5);
  EXPECT_EQ(verify(config({down, "--train.dtype=f64"}), {.steps = 1}).tolerance, 1e-10);
  const Verification half = verify(config({down, "--train.dtype=bf16"}), {.steps = 2});
  EXPECT_EQ(half.tolerance, 0.05);
  EXPECT_FALSE(half.first) << half.first->str();
  const Verification strict = verify(config({down}), {.steps = 1, .tolerance = 0});
  ASSERT_TRUE(strict.first);
  EXPECT_EQ(strict.first->step, 1);
  const Verification wrong = verify(config({down}), {.steps = 2, .plant = [](Trainer& t, i64) {
                                                       Array a = t.parameter("ln_f.bias");
                                                       const float value = 3;
                                                       std::memcpy(a.bytes.data(), &value, sizeof value);
                                                       t.set_parameter("ln_f.bias", a);
                                                     }});
  ASSERT_TRUE(wrong.first);
  EXPECT_EQ(wrong.first->kind, "loss");
  EXPECT_EQ(wrong.first->step, 2);
}

TEST_F(Verify, APlantedBugIsFoundAndNamed) {
  const auto plant = [](Trainer& t, i64 step) {
    if (step != 2) return;
    Array a = t.parameter("h.1.up");
    float value;
    const std::size_t at = 32 * 5 + 7;
    std::memcpy(&value, &a.bytes[at * sizeof value], sizeof value);
    value += 1;
    std::memcpy(&a.bytes[at * sizeof value], &value, sizeof value);
    t.set_parameter("h.1.up", a);
  };
  const Verification v = verify(config(), {.steps = 3, .plant = plant});
  ASSERT_TRUE(v.first);
  EXPECT_EQ(v.first->step, 2);
  EXPECT_EQ(v.first->kind, "parameter");
  EXPECT_EQ(v.first->name, "h.1.up");
  EXPECT_EQ(v.first->wrong, 1);
  EXPECT_NEAR(v.first->parallel - v.first->serial, 1, 1e-6);
  EXPECT_EQ(v.steps[0].wrong, 0);
  EXPECT_EQ(v.steps[1].wrong, 1);
  EXPECT_GT(v.steps[2].wrong, 20);  // by now it is everywhere
  EXPECT_THAT(v.first->str(), HasSubstr("step 2: the parameter 'h.1.up' differs in 1 of 4096 elements, first at ["));
  EXPECT_THAT(v.str(), HasSubstr("and the serial run differ"));
}

TEST_F(Verify, WhatCannotBeVerifiedIsRefused) {
  EXPECT_THROW(verify(config({"--parallel.device=emulated"})), Error);
  EXPECT_THROW(verify(config(), {.steps = 0}), Error);
}

}  // namespace
}  // namespace stretto

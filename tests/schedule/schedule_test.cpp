#include "stretto/schedule/schedule.h"

#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "support/message.h"

namespace stretto {
namespace {

TEST(Schedule, PlacementsAreTheDefinedOnes) {
  EXPECT_EQ(looped({.actors = 3, .microbatches = 1, .chunks = 2}).actor_of, placement({{0, 1, 2, 0, 1, 2}}));
  EXPECT_EQ(looped({.actors = 3, .microbatches = 1}).stages, 3);
  EXPECT_EQ(v_shaped({.actors = 3, .microbatches = 1}).actor_of, placement({{0, 1, 2, 2, 1, 0}}));
  EXPECT_EQ(bidirectional({.actors = 3, .microbatches = 2}).actor_of, placement({{0, 1, 2}, {2, 1, 0}}));
}

TEST(Schedule, PrintsCellsAsInCsv) {
  Schedule s = bidirectional({.actors = 2, .microbatches = 4});
  s.rows[0].F(0, 0).add(Phase::F, 1, 2, 1).add(Phase::B, 1, 2, 1).I(0, 0).W(0, 0).R(0, 1);
  s.rows[0][1].overlap = s.rows[0][2].overlap = 7;
  s.rows[1].add(Phase::F, 1, 0, 0, 2);
  EXPECT_EQ(s.str(), "0F0,(3F2;3B2)OVERLAP_F_B,0I0,0W0,0R1\n1F0.2\n");
  EXPECT_EQ(s.actions(), 7u);
  EXPECT_EQ(cell({.phase = Phase::W, .pipe = up_pipe, .stage = StageId(1), .microbatch = MicrobatchId(12)}, 4), "5W12");
}

TEST(Schedule, EqualityAndHashAreByContent) {
  Schedule a = looped({.actors = 2, .microbatches = 2});
  a.rows[0].F(0, 0).B(0, 0);
  Schedule b = a;
  b.name = "another name";
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.hash(), b.hash());
  const auto differs = [&](auto change) {
    Schedule c = a;
    change(c);
    return !(a == c) && a.hash() != c.hash();
  };
  EXPECT_TRUE(differs([](Schedule& c) { c.rows[0].F(0, 1); }));
  EXPECT_TRUE(differs([](Schedule& c) { std::swap(c.rows[0][0], c.rows[0][1]); }));
  EXPECT_TRUE(differs([](Schedule& c) { std::swap(c.rows[0], c.rows[1]); }));
  EXPECT_TRUE(differs([](Schedule& c) { c.rows[0][1].phase = Phase::I; }));
  EXPECT_TRUE(differs([](Schedule& c) { c.rows[0][1].segment = 1; }));
  EXPECT_TRUE(differs([](Schedule& c) { c.rows[0][0].overlap = c.rows[0][1].overlap = 1; }));
  EXPECT_TRUE(differs([](Schedule& c) { c.actor_of = placement({{1, 0}}); }));
  EXPECT_TRUE(differs([](Schedule& c) { c.segments = 2; }));
  EXPECT_TRUE(differs([](Schedule& c) { c.microbatches = 3; }));
}

TEST(Schedule, OverlapNumbersOnlyGroup) {
  Schedule a = looped({.actors = 1, .microbatches = 4});
  a.rows[0].F(0, 0).F(0, 1).B(0, 0).F(0, 2).B(0, 1);
  Schedule b = a, c = a;
  for (std::size_t i : {1u, 2u}) a.rows[0][i].overlap = 1, b.rows[0][i].overlap = 5, c.rows[0][i].overlap = 1;
  for (std::size_t i : {3u, 4u}) a.rows[0][i].overlap = 2, b.rows[0][i].overlap = 3, c.rows[0][i].overlap = 1;
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.hash(), b.hash());
  EXPECT_FALSE(a == c) << "two pairs are not one group of four";
  EXPECT_NE(a.hash(), c.hash());
}

TEST(Schedule, AbsurdRequestsAreRefusedBeforeAllocating) {
  EXPECT_EQ(refusal_of([] { looped({.actors = 0, .microbatches = 1}); }),
            "[schedule] 0 actors; hint: give at least 1 actor");
  EXPECT_NE(refusal_of([] { looped({.actors = 2, .microbatches = 0}); }).find("give at least 1 microbatch"),
            std::string::npos);
  EXPECT_NE(refusal_of([] { looped({.actors = 2, .microbatches = 1, .chunks = -1}); }).find("chunk"),
            std::string::npos);
  EXPECT_NE(refusal_of([] { looped({.actors = 2, .microbatches = 1, .segments = 0}); }).find("segment"),
            std::string::npos);
  EXPECT_NE(refusal_of([] { looped({.actors = 1 << 30, .microbatches = 1, .chunks = 1 << 30}); }).find("stages"),
            std::string::npos);
  EXPECT_NE(refusal_of([] { looped({.actors = 1024, .microbatches = 1 << 30}); }).find("too many actions"),
            std::string::npos);
  EXPECT_NE(
      refusal_of([] { looped({.actors = 1, .microbatches = 1 << 20, .segments = 1 << 10}); }).find("too many actions"),
      std::string::npos);
  EXPECT_NE(refusal_of([] { v_shaped({.actors = 2, .microbatches = 1, .chunks = 3}); }).find("2 chunks"),
            std::string::npos);
  EXPECT_NE(refusal_of([] { bidirectional({.actors = 2, .microbatches = 1, .chunks = 2}); }).find("1 chunk"),
            std::string::npos);
  EXPECT_NE(refusal_of([] { Row().F(-1, 0); }).find("-1F0"), std::string::npos);
  EXPECT_NE(refusal_of([] { Row().F(1 << 16, 0); }).find("65535"), std::string::npos);
}

}  // namespace
}  // namespace stretto

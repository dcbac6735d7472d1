#include "stretto/view/scene.h"

#include <gtest/gtest.h>

#include <limits>

#include "sample.h"

namespace stretto {
namespace {

Span span(int actor, double start, double end, Lane lane = Lane::compute) {
  return {.actor = actor, .lane = lane, .start = start, .end = end, .label = "x"};
}

TEST(Scene, StartsAtZeroAndHasATrackPerActorAndLane) {
  Timeline t{.actors = 3, .stages = 3, .spans = {span(0, 5, 6), span(2, 7, 9), span(2, 9, 10, Lane::message)}};
  t.spans[1].action = Action{.phase = Phase::F};
  const Scene s = scene(t);
  EXPECT_EQ(s.origin, 5);
  EXPECT_EQ(s.length, 5);
  EXPECT_EQ(s.shortest, 2);        // of the actions
  ASSERT_EQ(s.tracks.size(), 4u);  // compute of three actors, messages of one
  EXPECT_TRUE(s.tracks[1].bars.empty());
  EXPECT_EQ(s.tracks[2].bars.at(0).start, 2);
  EXPECT_EQ(s.tracks[3].lane, Lane::message);
}

TEST(Scene, LeavesOutWhatCannotBeDrawn) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  Timeline t{.actors = 1,
             .spans = {span(0, 1, 2), span(1, 0, 1), span(-1, 0, 1), span(0, nan, 1), span(0, 0, inf), span(0, 2, 1)}};
  const Scene s = scene(t);
  ASSERT_EQ(s.tracks.size(), 1u);
  EXPECT_EQ(s.tracks[0].bars.size(), 1u);
  EXPECT_EQ(s.length, 1);
  EXPECT_TRUE(scene(Timeline{}).tracks.empty());
  EXPECT_TRUE(scene(Timeline{.actors = -3}).tracks.empty());
}

TEST(Scene, OverlappingBarsShareTheHeight) {
  Timeline t{.actors = 1, .spans = {span(0, 0, 2), span(0, 2, 4), span(0, 2, 4), span(0, 4 - 1e-12, 5), span(0, 5, 6)}};
  const Scene s = scene(t);
  const std::vector<Bar>& b = s.tracks[0].bars;
  EXPECT_EQ(s.tracks[0].slots, 2);
  EXPECT_EQ(b[0].slots, 1);
  EXPECT_EQ(b[1].slots, 2);
  EXPECT_EQ(b[2].slots, 2);
  EXPECT_NE(b[1].slot, b[2].slot);
  EXPECT_EQ(b[3].slots, 1) << "the last bits of a sum are no overlap";
}

TEST(Scene, BubblesAreTheTimelines) {
  Timeline overlapping{.actors = 2, .spans = {span(0, 1, 3), span(0, 1, 3), span(0, 4, 6), span(1, 2, 5)}};
  for (const Timeline& t : {overlapping, sample::looped_bfs(2, 2, 3)}) {
    const Scene s = scene(t);
    ASSERT_EQ(int(s.bubbles.size()), t.actors);
    for (int a = 0; a < t.actors; ++a) EXPECT_NEAR(s.bubbles[std::size_t(a)], t.bubble(a), 1e-12) << a;
  }
}

TEST(Scene, EveryRankHasTracksAndTheBusiestStandsForItsActor) {
  const Timeline t = sample::with_ranks(sample::one_f_one_b(2, 2), 3);
  const Scene s = scene(t);
  ASSERT_EQ(s.tracks.size(), 6u);
  EXPECT_EQ(s.bubbles.size(), 6u);
  EXPECT_EQ(s.longest, (std::vector<int>{2, 2}));
  EXPECT_EQ(row_name(t, s.tracks[4]), "actor 1 rank 4");
  EXPECT_TRUE(stands_for_actor(s, s.tracks[5]));
  EXPECT_FALSE(stands_for_actor(s, s.tracks[3]));
  EXPECT_FALSE(folds(t));
  EXPECT_TRUE(folds(sample::with_ranks(sample::one_f_one_b(2, 2), 9)));
  EXPECT_FALSE(folds(sample::one_f_one_b(32, 2))) << "actors are never folded";
  EXPECT_NEAR(s.bubbles[0] + s.bubbles[1] + s.bubbles[2], 3 * t.bubble(0), 1e-12);
}

TEST(Scene, ChunkIsTheRankOfTheStageOnItsActor) {
  const Timeline t = sample::looped_bfs(2, 2, 3);
  const Scene s = scene(t);
  EXPECT_EQ(s.chunks, 3);
  for (const Track& track : s.tracks)
    for (const Bar& b : track.bars) EXPECT_EQ(b.chunk, b.span->action->stage.value / 2);
}

TEST(Scene, UpPipeIsAChunkOfItsOwn) {
  Timeline t{.actors = 1, .stages = 1};
  t.spans = {{.start = 0, .end = 1, .action = Action{.stage = StageId(0)}},
             {.start = 1, .end = 2, .action = Action{.pipe = up_pipe, .stage = StageId(0)}}};
  const Scene s = scene(t);
  EXPECT_EQ(s.chunks, 2);
  EXPECT_EQ(s.tracks[0].bars[1].chunk, 1);
  EXPECT_EQ(chunk_name(std::vector{t}, 1), "up pipe");
  EXPECT_EQ(chunk_name(std::vector{t, sample::looped_bfs(2, 2, 2)}, 1), "chunk 1");
}

TEST(Scene, TickStepIsRoundAndFewEnough) {
  EXPECT_DOUBLE_EQ(tick_step(33, 10), 5);
  EXPECT_DOUBLE_EQ(tick_step(10, 10), 1);
  EXPECT_DOUBLE_EQ(tick_step(0.0612, 10), 0.01);
  EXPECT_DOUBLE_EQ(tick_step(0, 10), 1);
  for (double length = 1e-7; length < 1e7; length *= 1.7) EXPECT_LE(length / tick_step(length, 8), 8 + 1e-9);
}

TEST(Scene, Texts) {
  EXPECT_EQ(time_text(28.5, Clock::units), "28.5");
  EXPECT_EQ(time_text(0.0021, Clock::seconds), "2.1 ms");
  EXPECT_EQ(time_text(2.1e-5, Clock::seconds), "21 us");
  EXPECT_EQ(time_text(12, Clock::seconds), "12 s");
  EXPECT_EQ(memory_text(4.5, "activations"), "4.5 activations");
  EXPECT_EQ(memory_text(2048, "bytes"), "2.00 KiB");
  const Span s{.action = Action{.phase = Phase::I, .stage = StageId(2), .microbatch = MicrobatchId(7)}};
  EXPECT_EQ(caption(s), "7");
  EXPECT_EQ(describe(s, 4), "2I7: input gradient of stage 2, microbatch 7");
  EXPECT_EQ(caption({.action = Action{.microbatch = MicrobatchId(7), .segment = 1}}), "7.1");
  EXPECT_EQ(describe({.label = "update"}, 4), "update");
  EXPECT_EQ(summary(sample::one_f_one_b(4, 8)), "makespan 33, bubble 27.3%, peak 4 activations");
}

}  // namespace
}  // namespace stretto

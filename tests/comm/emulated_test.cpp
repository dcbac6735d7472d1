// Messages and collectives over links that are not there: never early, one at a time, with the content of the real
// ones.
#include <gtest/gtest.h>

#include <thread>

#include "plain_collective.h"
#include "stretto/base/clock.h"
#include "stretto/comm/emulated_clock.h"
#include "stretto/comm/inner/notes.h"
#include "stretto/comm/wiring.h"
#include "stretto/cost/collective.h"

namespace stretto {
namespace {

using test::dense;

constexpr Arena activation_arena = Arena::activations;

std::unique_ptr<Wiring> emulated(const Cluster& links, bool content = true) {
  return emulated_wiring(thread_wiring(0), {.links = links, .content = content});
}

TEST(EmulatedClock, DelaysAreMadeUpForWhereThatIsAskedFor) {
  const double start = now();
  pass_until(start - 1);
  EXPECT_GE(emulated_now(), start);
  std::jthread([] {
    make_up_for_delays();
    const double from = emulated_now();
    EXPECT_GE(from, now() - 1);
    pass_until(from - 10);
    EXPECT_LT(emulated_now(), from) << "it should have been here ten seconds ago";
    pass_until(from - 5);
    EXPECT_LT(emulated_now(), from);
    EXPECT_LT(now(), from + 4) << "nothing was slept for";
    make_up_for_delays();
    EXPECT_GE(emulated_now(), from);
  }).join();
}

TEST(EmulatedGroup, OnItsWayAsLongAsTheLinkTakes) {
  for (bool content : {false, true}) {
    const auto group = emulated(equal_links({.latency = 1e6}), content)->group({0, 1}, 0, 16);
    std::vector<float> x(2, 1);
    const std::uint32_t what = group->prepare(dense(CollectiveKind::reduce, f32, 2, {1}));
    const u64 a = group->start(0, what, content ? &x[0] : nullptr, content ? &x[0] : nullptr),
              b = group->start(1, what, content ? &x[1] : nullptr, content ? &x[1] : nullptr);
    EXPECT_FALSE(group->progress(0, a));
    EXPECT_FALSE(group->progress(1, b));
    std::thread late([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      group->stop();
    });
    EXPECT_THROW(group->wait(0, a), Error);
    late.join();
  }
}

template <class F>
void on_both(F f) {
  std::thread other([&] { f(1); });
  f(0);
  other.join();
}

TEST(EmulatedGroup, OneAtATimeAndNeverEarly) {
  const Link link{.latency = 1e-3, .bandwidth = 1e8};
  const CollectiveShape s = dense(CollectiveKind::exchange, f32, 2, {10'000});
  const auto group = emulated(equal_links(link), false)->group({0, 1}, 0, 4);
  const std::uint32_t what = group->prepare(s);
  on_both([&](int m) {
    for (int round = 0; round < 3; ++round) {
      const double start = now();
      std::vector<u64> tickets;
      for (int i = 0; i < 4; ++i) tickets.push_back(group->start(m, what, nullptr, nullptr));
      group->wait(m, tickets[3]);
      EXPECT_GE(now() - start, 4 * collective_seconds(s, link));
      for (int i = 0; i < 3; ++i) EXPECT_TRUE(group->progress(m, tickets[i])) << "those before it are complete";
    }
  });
}

TEST(EmulatedGroup, NodesOfAClusterAreCloser) {
  const Cluster links{.inside = {.latency = 0}, .between = {.latency = 1e6}, .ranks_per_node = 2};
  const auto wires = emulated(links, false);
  const auto inside = wires->group({2, 3}, 0, 1), between = wires->group({1, 2}, 0, 1);
  const CollectiveShape s = dense(CollectiveKind::reduce, f32, 2, {4});
  for (CollectiveGroup* g : {inside.get(), between.get()}) {
    const std::uint32_t what = g->prepare(s);
    const u64 a = g->start(0, what, nullptr, nullptr), b = g->start(1, what, nullptr, nullptr);
    EXPECT_EQ(g->progress(0, a), g == inside.get());
    EXPECT_EQ(g->progress(1, b), g == inside.get());
  }
}

TEST(EmulatedGroup, MovesWhatTheRealOneMoves) {
  constexpr int members = 3;
  const auto group = emulated(equal_links({.latency = 1e-6}))->group({0, 1, 2}, 0, 2);
  test::Plain p(dense(CollectiveKind::gather, f32, members, {1000}), 1);
  const std::uint32_t what = group->prepare(p.shape);
  EXPECT_EQ(group->prepare(p.shape), what);
  for (int round = 0; round < 20; ++round) {
    u64 tickets[members];
    for (int m = 0; m < members; ++m) tickets[m] = group->start(m, what, p.in(m), p.out(m));
    for (int m = 0; m < members; ++m) group->wait(m, tickets[m]);
  }
  EXPECT_TRUE(p.right());
}

constexpr TransferId first{0}, second{1};

// Two actors and two messages between them, both the same way.
struct Line {
  Program program;
  float memory[2][2] = {{1, 2}, {0, 0}};
  std::vector<ArenaBases> arenas{2};
  Line() {
    program.actors.resize(2);
    program.routes.push_back({ActorId(0), ActorId(1), 4'000'000, "line"});
    for (u64 offset : {0, 4})
      program.transfers.push_back(
          {.route = RouteId(0), .extents = {{.from = {.offset = offset}, .to = {.offset = offset}, .bytes = 4}}});
    for (int a : {0, 1}) arenas[a][activation_arena] = reinterpret_cast<std::byte*>(memory[a]);
  }
};

TEST(EmulatedTransport, OneMessageAtATimeAndNeverEarly) {
  Line line;
  const auto t = emulated(equal_links({.latency = 1e-3, .bandwidth = 1e9}))->transport(line.program, line.arenas, 0);
  for (std::uint32_t round = 1; round < 4; ++round) {
    const double start = now();
    on_both([&](int actor) {
      if (actor == 0) {
        t->send(first, round), t->send(second, round);
      } else {
        t->receive(first, round);
        EXPECT_GE(now() - start, 5e-3);
        EXPECT_GT(t->receive(second, round), 0);
        EXPECT_GE(now() - start, 9e-3) << "it leaves when the first has left";
      }
    });
    EXPECT_EQ(line.memory[1][0], 1);
    EXPECT_EQ(line.memory[1][1], 2);
  }
}

TEST(EmulatedTransport, WithoutContentNothingIsMoved) {
  Line line;
  const auto t = emulated({}, false)->transport(line.program, {}, 0);
  t->send(second, 1);
  t->receive(second, 1);
  EXPECT_EQ(line.memory[1][1], 0);
}

TEST(EmulatedTransport, StopReachesWhoWaitsForTheLink) {
  Line line;
  const auto t = emulated(equal_links({.latency = 1e6}))->transport(line.program, line.arenas, 0);
  t->send(first, 1);
  std::thread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    t->stop();
  });
  EXPECT_THROW(t->receive(first, 1), Error);
  late.join();
  EXPECT_THROW(t->receive(second, 1), Error);
}

TEST(Notes, OneNumberGoesAlongWithEveryMessage) {
  Line line;
  line.program.transfers[second].direct = true;
  line.program.transfers[second].released = InstructionId(3);
  const Program notes = notes_of(line.program);
  ASSERT_EQ(notes.transfers.size(), 2u);
  EXPECT_EQ(notes.transfers[second].extents[0].to.offset, sizeof(double));
  EXPECT_EQ(notes.transfers[second].released, InstructionId(3));
  EXPECT_FALSE(notes.transfers[second].direct) << "a note is not made in the receiver's memory";
  const Notes told = thread_wiring(0)->notes(line.program, 0);
  told.of_actor[0][1] = 7;
  told.transport->send(second, 1);
  told.transport->receive(second, 1);
  EXPECT_EQ(told.of_actor[1][1], 7);
  EXPECT_EQ(told.of_actor[1][0], 0);
}

}  // namespace
}  // namespace stretto

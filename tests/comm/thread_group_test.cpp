#include "stretto/comm/threads/thread_group.h"

#include <gmock/gmock.h>

#include <chrono>
#include <exception>
#include <numeric>
#include <thread>

#include "plain_collective.h"
#include "support/message.h"
#include "support/property.h"

namespace stretto {
namespace {

using test::all_kinds;
using test::dense;
using test::Plain;
using test::random_shape;

// f(member) on a thread each. The first error stops the group and is rethrown.
template <class F>
void on_all(ThreadGroup& group, F f) {
  std::exception_ptr failure;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int m = 0; m < group.members(); ++m)
    threads.emplace_back([&, m] {
      try {
        f(m);
      } catch (...) {
        group.stop();
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    });
  for (std::thread& t : threads) t.join();
  if (failure) std::rethrow_exception(failure);
}

void run(ThreadGroup& group, Plain& p) {
  const std::uint32_t what = group.prepare(p.shape);
  on_all(group, [&](int m) { group.wait(m, group.start(m, what, p.in(m), p.out(m))); });
}

void pause_up_to(std::mt19937& random, int microseconds) {
  if (random() % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % unsigned(microseconds)));
}

TEST(ThreadGroup, EveryKindNumberOfMembersAndSize) {
  for (int members = 1; members <= 8; ++members) {
    ThreadGroup group(members);
    for (CollectiveKind kind : all_kinds)
      for (i64 size : {0, 1, 37, 20011}) {
        Plain p(dense(kind, f32, members, {size}), unsigned(size) + 1);
        run(group, p);
        ASSERT_TRUE(p.right());
      }
  }
}

TEST(ThreadGroup, EveryTypeSumsAndMaxima) {
  for (int members : {2, 3, 5, 7}) {
    ThreadGroup group(members);
    for (DType dtype : {f32, f64, i32})
      for (Reduce how : {Reduce::sum, Reduce::max})
        for (CollectiveKind kind : {CollectiveKind::reduce, CollectiveKind::scatter}) {
          Plain p(dense(kind, dtype, members, {3, 1234}, how), 7);
          run(group, p);
          ASSERT_TRUE(p.right());
        }
  }
}

TEST(ThreadGroup, InPlace) {
  for (int members : {1, 2, 3, 8}) {
    ThreadGroup group(members);
    for (CollectiveKind kind : {CollectiveKind::reduce, CollectiveKind::gather, CollectiveKind::scatter}) {
      Plain p(dense(kind, f32, members, {30011}), 3, true);
      run(group, p);
      ASSERT_TRUE(p.right());
    }
  }
}

TEST(ThreadGroup, PaddingIsNeitherReadNorKept) {
  for (i64 valid : {0, 1, 9999, 20000, 25000, 30000}) {
    ThreadGroup group(3);
    for (CollectiveKind kind : {CollectiveKind::gather, CollectiveKind::scatter}) {
      CollectiveShape s = dense(kind, f64, 3, {10000});
      s.valid = valid;
      Plain p(s, 5);
      run(group, p);
      ASSERT_TRUE(p.right()) << valid;
    }
  }
}

TEST(ThreadGroup, ANaNStaysInAMaximum) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  for (const auto& [a, b, want] :
       std::vector<std::array<double, 3>>{{nan, 1, nan}, {1, nan, nan}, {-inf, 1, 1}, {inf, 1, inf}, {-2, -3, -2}}) {
    ThreadGroup group(2);
    const std::uint32_t what = group.prepare(dense(CollectiveKind::reduce, f64, 2, {1}, Reduce::max));
    double x[2] = {a, b};
    u64 ticket[2];
    for (int m = 0; m < 2; ++m) ticket[m] = group.start(m, what, &x[m], &x[m]);
    for (int m = 0; m < 2; ++m) {
      group.wait(m, ticket[m]);
      EXPECT_TRUE(x[m] == want || (std::isnan(x[m]) && std::isnan(want))) << a << " " << b << " " << x[m];
    }
  }
}

TEST(ThreadGroup, AnyStridesSeveralUnderWayInAnyOrderOfWaiting) {
  EXPECT_TRUE(holds("every member gets what the plain formula gives", 150, [] {
    const int members = *rc::gen::inRange(1, 9);
    const unsigned seed = *rc::gen::arbitrary<unsigned>();
    const int count = *rc::gen::inRange(1, 6), delay = *rc::gen::element(1, 300);
    std::mt19937 random(seed);
    ThreadGroup group(members, {.under_way = count, .spins = int(random() % 2) * 50});
    std::vector<Plain> all;
    std::vector<std::uint32_t> prepared;
    for (int i = 0; i < 2 * count; ++i) {
      CollectiveShape s = random_shape(random, members);
      const bool in_place = s.kind == CollectiveKind::reduce && random() % 2;
      if (in_place) s.out_strides = s.in_strides;
      all.emplace_back(s, seed + unsigned(i), in_place);
      prepared.push_back(group.prepare(s));
    }
    on_all(group, [&](int m) {
      std::mt19937 mine(seed + unsigned(m));
      for (int turn = 0; turn < 2; ++turn) {
        std::vector<u64> tickets;
        for (int k = turn * count; k < (turn + 1) * count; ++k) {
          pause_up_to(mine, delay);
          tickets.push_back(
              group.start(m, prepared[std::size_t(k)], all[std::size_t(k)].in(m), all[std::size_t(k)].out(m)));
        }
        std::shuffle(tickets.begin(), tickets.end(), mine);
        for (u64 t : tickets) {
          for (int look = int(mine() % 4); look > 0 && !group.progress(m, t); --look) pause_up_to(mine, delay);
          group.wait(m, t);
        }
      }
    });
    for (const Plain& p : all) RC_ASSERT(p.right());
  }));
}

TEST(ThreadGroup, ThousandsOfRoundsInTheSameMemory) {
  constexpr int members = 4, rounds = 3000;
  constexpr i64 large = 5000;
  ThreadGroup group(members, {.under_way = 2});
  const std::uint32_t sum = group.prepare(dense(CollectiveKind::reduce, f64, members, {large})),
                      gather = group.prepare(dense(CollectiveKind::gather, i32, members, {3}));
  std::atomic<int> wrong{0};
  on_all(group, [&](int m) {
    std::vector<double> x(large);
    std::vector<std::int32_t> one(3), everybody(3 * members);
    for (int r = 0; r < rounds; ++r) {
      std::fill(x.begin(), x.end(), double(m + r));
      std::fill(one.begin(), one.end(), 10 * r + m);
      const u64 a = group.start(m, sum, x.data(), x.data()), b = group.start(m, gather, one.data(), everybody.data());
      group.wait(m, b);
      group.wait(m, a);
      wrong += x[0] != 6 + 4 * r || x[large - 1] != x[0];
      for (int k = 0; k < 3 * members; ++k) wrong += everybody[std::size_t(k)] != 10 * r + k / 3;
    }
  });
  EXPECT_EQ(wrong, 0);
}

// One thread can play all members, because only wait waits.
TEST(ThreadGroup, AMemberDoesNoMoreThanItsShareBetweenKernels) {
  ThreadGroup group(2);
  Plain p(dense(CollectiveKind::reduce, f32, 2, {1 << 20}), 1);
  const std::uint32_t what = group.prepare(p.shape);
  const u64 first = group.start(0, what, p.in(0), p.out(0));
  EXPECT_FALSE(group.progress(0, first));
  const u64 second = group.start(1, what, p.in(1), p.out(1));
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(group.progress(0, first));
  EXPECT_TRUE(group.progress(1, second));
  EXPECT_TRUE(group.progress(0, first));
  EXPECT_TRUE(group.progress(0, first));
  EXPECT_EQ(group.wait(0, first), 0);
  EXPECT_TRUE(p.right());
}

TEST(ThreadGroup, StopReachesEverybodyWhoWaitsOrWill) {
  ThreadGroup group(3);
  const std::uint32_t what = group.prepare(dense(CollectiveKind::reduce, f32, 3, {4}));
  std::vector<float> x(12);
  std::atomic<int> stopped{0};
  const auto member = [&](int m) {
    const u64 t = group.start(m, what, &x[std::size_t(4 * m)], &x[std::size_t(4 * m)]);
    try {
      group.wait(m, t);
    } catch (const Error& e) {
      EXPECT_STREQ(e.what(), "[runtime] stopped because another rank failed");
      EXPECT_EQ(e.kind(), Error::Kind::run);
      ++stopped;
    }
    EXPECT_THROW(group.progress(m, t), Error);
  };
  std::thread one(member, 0), two(member, 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  group.stop();
  one.join();
  two.join();
  EXPECT_EQ(stopped, 2);
  EXPECT_THROW(group.start(2, what, &x[8], &x[8]), Error);
}

TEST(ThreadGroup, MistakesAreNamed) {
  ThreadGroup group(2, {.under_way = 2});
  EXPECT_EQ(refusal_of([&] { group.prepare(dense(CollectiveKind::gather, f32, 3, {4})); }),
            "[collective] all_gather over data=3: f32 {4} is for 3 members, the group has 2");
  EXPECT_EQ(refusal_of([&] { group.prepare(dense(CollectiveKind::reduce, f16, 2, {4})); }),
            "[collective] sums of f16 are not made; hint: cast to f32 first");
  const std::uint32_t a = group.prepare(dense(CollectiveKind::reduce, f32, 2, {4})),
                      b = group.prepare(dense(CollectiveKind::gather, f32, 2, {4}));
  EXPECT_EQ(group.prepare(dense(CollectiveKind::reduce, f32, 2, {4})), a);
  float x[16] = {};
  group.start(0, a, x, x);
  group.start(0, a, x + 4, x + 4);
  EXPECT_THAT(refusal_of([&] { group.start(0, a, x, x); }), testing::HasSubstr("while 2 others are under way"));
  EXPECT_EQ(
      refusal_of([&] { group.start(1, b, x, x); }),
      "[collective] member 0 has started all_reduce over data=2: f32 {4}, member 1 all_gather over data=2: f32 {4}");
  EXPECT_THROW(group.wait(0, 0), Error);  // ... and stop everybody
}

TEST(ThreadGroup, HalfPrecisionIsMoved) {
  ThreadGroup group(2);
  CollectiveShape s = dense(CollectiveKind::gather, bf16, 2, {3});
  s.in_strides = {2};
  const std::uint32_t what = group.prepare(s);
  const std::uint16_t in[2][5] = {{1, 0, 2, 0, 3}, {4, 0, 5, 0, 6}};
  std::uint16_t out[2][6] = {};
  u64 t[2];
  for (int m = 0; m < 2; ++m) t[m] = group.start(m, what, in[m], out[m]);
  for (int m = 0; m < 2; ++m) {
    group.wait(m, t[m]);
    EXPECT_THAT(out[m], testing::ElementsAre(1, 2, 3, 4, 5, 6));
  }
}

}  // namespace
}  // namespace stretto

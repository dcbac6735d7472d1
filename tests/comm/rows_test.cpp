// Rows of which nobody knows ahead how many go from whom to whom.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "lane_devices.h"
#include "stretto/comm/threads/thread_group.h"

namespace stretto {
namespace {

struct Exchange {
  int members;
  i64 in, out, row, in_step, out_step;
  std::vector<std::int32_t> counts;            // from, to
  std::vector<std::vector<float>> sent, came;  // per member

  CollectiveShape shape() const {
    CollectiveShape s{.kind = CollectiveKind::rows, .members = members, .axes = {"expert"}};
    s.in_step = in_step, s.out_step = out_step;
    add_box_dim(s, std::max(in, out), in_step, out_step);
    add_box_dim(s, row, 1, 1);
    s.rows = CollectiveShape::Rows{in, out, row};
    return s;
  }
};

// No member sends or gets more than there is room for.
Exchange random_exchange(std::mt19937& random) {
  Exchange e{.members = 1 + int(random() % 5), .in = i64(random() % 300), .row = 1 + i64(random() % 50)};
  e.in_step = e.row + i64(random() % 2 * 3), e.out_step = e.row + i64(random() % 2 * 5);
  std::vector<i64> came(std::size_t(e.members), 0);
  for (int from = 0; from < e.members; ++from)
    for (i64 to = 0, left = e.in; to < e.members; ++to) {
      const i64 n = left > 0 && random() % 4 ? i64(random()) % (left + 1) : 0;
      left -= n, came[std::size_t(to)] += n;
      e.counts.push_back(std::int32_t(n));
    }
  e.out = *std::max_element(came.begin(), came.end()) + i64(random() % 7);
  e.in = std::max<i64>(e.in, 1), e.out = std::max<i64>(e.out, 1);
  for (int m = 0; m < e.members; ++m) {
    std::vector<float>& x = e.sent.emplace_back(std::size_t(e.in * e.in_step));
    for (float& y : x) y = float(random() % 10000);
    e.came.emplace_back(std::size_t(e.out * e.out_step), -1.f);
  }
  return e;
}

// Row by row: every sender keeps its own place, every receiver takes from one sender after the other.
void expect_right(const Exchange& e) {
  for (int to = 0; to < e.members; ++to) {
    i64 at = 0;
    const auto result = [&](i64 row, i64 i) { return e.came[std::size_t(to)][std::size_t(row * e.out_step + i)]; };
    for (int from = 0; from < e.members; ++from) {
      i64 first = 0;
      for (int before = 0; before < to; ++before) first += e.counts[std::size_t(from * e.members + before)];
      for (i64 r = 0; r < e.counts[std::size_t(from * e.members + to)]; ++r, ++at)
        for (i64 i = 0; i < e.row; ++i)
          ASSERT_EQ(result(at, i), e.sent[std::size_t(from)][std::size_t((first + r) * e.in_step + i)]);
    }
    for (; at < e.out; ++at)
      for (i64 i = 0; i < e.row; ++i) ASSERT_EQ(result(at, i), 0) << "nobody came";
    for (i64 r = 0; r < e.out; ++r)
      for (i64 i = e.row; i < e.out_step; ++i) ASSERT_EQ(result(r, i), -1) << "between rows";
  }
}

TEST(RowsBetweenThreads, GoWhereCountsSay) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    Exchange e = random_exchange(random);
    ThreadGroup group(e.members);
    const std::uint32_t what = group.prepare(e.shape());
    std::vector<std::thread> threads;
    for (int m = 0; m < e.members; ++m)
      threads.emplace_back([&, m] {
        const std::vector<std::int32_t> own = e.counts;
        group.wait(m, group.start(m, what, e.sent[std::size_t(m)].data(), e.came[std::size_t(m)].data(), own.data()));
      });
    for (std::thread& t : threads) t.join();
    expect_right(e);
  }
}

TEST(RowsBetweenThreads, AShapeKnowsWhatItMovesInTheMean) {
  std::mt19937 random(1);
  const Exchange e = random_exchange(random);
  const CollectiveShape s = e.shape();
  EXPECT_EQ(s.operand(), e.in * e.row);
  EXPECT_EQ(s.result(), e.out * e.row);
  EXPECT_TRUE(s.exchanges());
  EXPECT_FALSE(s.sums());
}

// On make-believe CUDA devices, which read the counts where they lie.
TEST(RowsBetweenCudaDevices, GoWhereCountsSay) {
  if (!test::make_believe_cuda()) GTEST_SKIP() << "there is no NVRTC on this machine";
  for (unsigned seed = 0; seed < 8; ++seed) {
    std::mt19937 random(seed);
    Exchange e = random_exchange(random);
    test::Devices devices(e.members, test::cuda_device);
    for (int m = 0; m < e.members; ++m) {
      devices.put(m, e.sent[std::size_t(m)].data(), 4 * e.sent[std::size_t(m)].size());
      devices.put(m, e.came[std::size_t(m)].data(), 4 * e.came[std::size_t(m)].size());
      devices.put(m, e.counts.data(), 4 * e.counts.size());
    }
    const LaneMemory memory = devices.memory();
    LaneGroup group(devices.list, memory, DeviceLane::compute);
    const std::uint32_t what = group.prepare(e.shape());
    for (int m = 0; m < e.members; ++m) group.start(m, what, devices.at(0, m), devices.at(1, m), devices.at(2, m));
    devices.finish();
    for (int m = 0; m < e.members; ++m)
      devices.all[std::size_t(m)]->read(e.came[std::size_t(m)].data(), devices.at(1, m),
                                        4 * e.came[std::size_t(m)].size());
    expect_right(e);
  }
  test::make_believe() = {};
}

}  // namespace
}  // namespace stretto

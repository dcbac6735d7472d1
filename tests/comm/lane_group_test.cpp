// Collectives in lanes of devices: right for every kind, one after the other, and over when stopped. On asynchronous
// CPU devices, and on make-believe CUDA devices, where shares are kernels.
#include "stretto/comm/lanes/lane_group.h"

#include <gtest/gtest.h>

#include "lane_devices.h"
#include "plain_collective.h"
#include "support/message.h"

namespace stretto {
namespace {

using test::all_kinds;
using test::async_device;
using test::cuda_device;
using test::dense;
using test::Devices;
using test::Plain;

// One host for all members: nothing that it calls waits.
void expect_right(Devices& devices, std::vector<Plain>& all) {
  struct Where {
    std::size_t in, out;
    std::vector<i64> in_at, out_at;  // bytes, per member
  };
  const int members = int(devices.all.size());
  std::vector<Where> where;
  for (Plain& p : all) {
    Where w;
    w.out = devices.put([&](int m) -> test::Buffer& { return p.result(m); });
    const bool in_place = &p.operand(0) == &p.result(0);
    w.in = in_place ? w.out : devices.put([&](int m) -> test::Buffer& { return p.operand(m); });
    for (int m = 0; m < members; ++m) {
      w.in_at.push_back(p.in(m)-p.operand(m).data());
      w.out_at.push_back(p.out(m) - p.result(m).data());
    }
    where.push_back(w);
  }
  const LaneMemory memory = devices.memory();
  LaneGroup group(devices.list, memory, DeviceLane::gradients);
  for (int m = 0; m < members; ++m)
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Where& w = where[i];
      group.start(m, group.prepare(all[i].shape), devices.at(w.in, m) + w.in_at[std::size_t(m)],
                  devices.at(w.out, m) + w.out_at[std::size_t(m)]);
    }
  devices.finish();
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (int m = 0; m < members; ++m) {
      test::Buffer& b = all[i].result(m);
      devices.all[std::size_t(m)]->read(b.data(), devices.at(where[i].out, m),
                                        std::size_t(b.count()) * size_of(b.dtype()));
    }
    EXPECT_TRUE(all[i].right());
  }
}

std::vector<Plain> every_kind(int members, i64 largest) {
  std::vector<Plain> all;
  for (CollectiveKind kind : all_kinds)
    for (i64 size : {i64(0), i64(1), i64(37), largest})
      all.emplace_back(dense(kind, f32, members, {size}), unsigned(size) + 1);
  for (CollectiveKind kind : {CollectiveKind::reduce, CollectiveKind::gather, CollectiveKind::scatter})
    all.emplace_back(dense(kind, f64, members, {largest / 7}), 3, true);
  return all;
}

TEST(LaneGroup, EveryKindNumberOfMembersAndSize) {
  for (int members : {1, 2, 3, 5}) {
    Devices devices(members, async_device);
    std::vector<Plain> all = every_kind(members, 20011);
    expect_right(devices, all);
  }
}

class CudaLaneGroup : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::make_believe_cuda()) GTEST_SKIP() << "there is no NVRTC on this machine";
  }
  void TearDown() override { test::make_believe() = {}; }
};

TEST_F(CudaLaneGroup, EveryKindNumberOfMembersAndSize) {
  for (int members : {1, 2, 3, 5}) {
    Devices devices(members, cuda_device);
    std::vector<Plain> all = every_kind(members, 2011);
    expect_right(devices, all);
  }
}

// Strides of boxes and members in any order, integers, maxima, padding of flat storage.
TEST_F(CudaLaneGroup, RandomShapes) {
  std::mt19937 random(11);
  for (int members : {2, 4}) {
    Devices devices(members, cuda_device);
    std::vector<Plain> all;
    for (unsigned k = 0; k < 24; ++k) all.emplace_back(test::random_shape(random, members), k);
    for (const DType dtype : {f32, i32})
      all.emplace_back(dense(CollectiveKind::reduce, dtype, members, {50}, Reduce::max), 5);
    expect_right(devices, all);
  }
}

void expect_stopped(Devices devices) {
  Plain p(dense(CollectiveKind::reduce, f32, 2, {100}), 1);
  const std::size_t in = devices.put([&](int m) -> test::Buffer& { return p.operand(m); });
  const LaneMemory memory = devices.memory();
  LaneGroup group(devices.list, memory, DeviceLane::storage);
  const std::uint32_t sum = group.prepare(p.shape);
  for (int round = 0; round < 3; ++round) group.start(0, sum, devices.at(in, 0), devices.at(in, 0));
  group.stop();
  EXPECT_EQ(refusal_of([&] { devices.all[0]->finish(); }), "[runtime] stopped because another rank failed");
  EXPECT_FALSE(devices.all[1]->finish());
  devices.all.clear();  // lanes end before their words
}
TEST(LaneGroup, WhoWaitsForOthersIsStopped) { expect_stopped(Devices(2, async_device)); }
// Nothing takes a wait out of a stream: it passes, and what follows is thrown away.
TEST_F(CudaLaneGroup, WhoWaitsForOthersIsStopped) { expect_stopped(Devices(2, cuda_device)); }

TEST_F(CudaLaneGroup, DevicesThatDoNotReachEachOtherAreRefused) {
  test::make_believe().reach = false;
  EXPECT_EQ(
      refusal_of([] { Devices(2, cuda_device); }),
      "[parallel.device] CUDA device 0 (make-believe) does not reach the memory of device 1 (make-believe); hint: "
      "ranks that exchange messages need devices that do: CUDA_VISIBLE_DEVICES says which are seen, nvidia-smi "
      "topo -p2p w shows which reach each other");
}

}  // namespace
}  // namespace stretto

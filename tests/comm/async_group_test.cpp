// Collectives in lanes of asynchronous devices: right for every kind, one after the other, and over when stopped.
#include "stretto/comm/async/async_group.h"

#include <gtest/gtest.h>

#include "plain_collective.h"
#include "support/message.h"

namespace stretto {
namespace {

using test::all_kinds;
using test::dense;
using test::Plain;

struct Devices {
  explicit Devices(int members) {
    for (int m = 0; m < members; ++m)
      all.push_back(std::make_unique<AsyncDevice>(AsyncOptions{.jitter = 1e-4, .seed = u64(m)}));
  }
  std::vector<AsyncDevice*> list() const {
    std::vector<AsyncDevice*> members;
    for (const auto& d : all) members.push_back(d.get());
    return members;
  }
  std::vector<std::unique_ptr<AsyncDevice>> all;
};

// One host for all members: nothing that it calls waits.
TEST(AsyncGroup, EveryKindNumberOfMembersAndSize) {
  for (int members : {1, 2, 3, 5}) {
    const Devices devices(members);
    AsyncGroup group(devices.list(), DeviceLane::gradients);
    std::vector<Plain> all;
    for (CollectiveKind kind : all_kinds)
      for (i64 size : {0, 1, 37, 20011}) all.emplace_back(dense(kind, f32, members, {size}), unsigned(size) + 1);
    for (CollectiveKind kind : {CollectiveKind::reduce, CollectiveKind::gather, CollectiveKind::scatter})
      all.emplace_back(dense(kind, f64, members, {3001}), 3, true);
    for (int m = 0; m < members; ++m)
      for (Plain& p : all) group.start(m, group.prepare(p.shape), p.in(m), p.out(m));
    for (const auto& d : devices.all) d->finish();
    for (const Plain& p : all) EXPECT_TRUE(p.right());
  }
}

TEST(AsyncGroup, WhoWaitsForOthersIsStopped) {
  const Devices devices(2);
  AsyncGroup group(devices.list(), DeviceLane::storage);
  Plain p(dense(CollectiveKind::reduce, f32, 2, {100}), 1);
  group.start(0, group.prepare(p.shape), p.in(0), p.out(0));
  group.stop();
  EXPECT_EQ(refusal_of([&] { devices.all[0]->finish(); }), "[runtime] stopped because another rank failed");
  EXPECT_FALSE(devices.all[1]->finish());
}

}  // namespace
}  // namespace stretto

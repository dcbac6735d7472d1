// Lanes of the asynchronous device: each in order, waiting for events only, and what goes wrong in one comes out.
#include "stretto/kernels/async/async_device.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "support/message.h"

namespace stretto {
namespace {

TEST(AsyncDevice, LanesRunInOrderAndWaitForEventsOnly) {
  AsyncDevice d({});
  const EventId made = d.event(), late = d.event();
  std::atomic<bool> go = false;
  int value = 0, seen = 0;
  for (int step = 0; step < 3; ++step) {
    go = false;
    d.enqueue(DeviceLane::storage, [&go] {
      while (!go) std::this_thread::yield();
    });
    d.record(late, DeviceLane::storage);
    d.enqueue(DeviceLane::compute, [&value] { ++value; });
    d.record(made, DeviceLane::compute);
    d.wait(DeviceLane::messages, made);
    d.enqueue(DeviceLane::messages, [&value, &seen, &go] {
      seen = value;
      go = true;  // storage is still busy: nobody waited for it
    });
    EXPECT_FALSE(d.finish());
    EXPECT_EQ(seen, step + 1);
    EXPECT_LE(d.seconds(made), d.seconds(late));
    EXPECT_EQ(d.newest(), made);  // of the compute lane
  }
}

TEST(AsyncDevice, CallsReturnBeforeWorkIsDone) {
  AsyncDevice d({});
  std::atomic<bool> go = false;
  d.enqueue(DeviceLane::compute, [&go] {
    while (!go) std::this_thread::yield();
  });
  for (int i = 0; i < 1000; ++i) d.enqueue(DeviceLane::compute, [] {});
  go = true;  // a call that waited would never come here
  d.finish();
}

TEST(AsyncDevice, WhatALaneThrowsFirstComesOutAtTheEndAndStopsTheOthers) {
  AsyncDevice d({});
  const EventId broken = d.event();
  int ran = 0;
  d.enqueue(DeviceLane::gradients, [] { throw Error("here", "it broke"); });
  d.enqueue(DeviceLane::gradients, [&ran] { ++ran; });
  d.record(broken, DeviceLane::gradients);
  d.wait(DeviceLane::compute, broken);
  d.enqueue(DeviceLane::compute, [&ran] {
    ++ran;
    throw Error("there", "too");
  });
  EXPECT_EQ(refusal_of([&] { d.finish(); }), "[here] it broke");
  EXPECT_EQ(refusal_of([&] { d.finish(); }), "[here] it broke");
  EXPECT_EQ(ran, 0);
}

// One lane is stuck, as one that waits for a rank that failed: the failure of another still comes out.
TEST(AsyncDevice, AFailureIsNotKeptBackByALaneThatWaits) {
  std::atomic<bool> go = false;
  AsyncDevice d({});
  d.enqueue(DeviceLane::compute, [&go] {
    while (!go) std::this_thread::yield();
  });
  d.enqueue(DeviceLane::messages, [] { throw Error("here", "it broke"); });
  EXPECT_EQ(refusal_of([&] { d.finish(); }), "[here] it broke");
  go = true;
}

TEST(AsyncDevice, JitterMakesLanesDawdle) {
  const auto slept = [](u64 seed) {
    AsyncDevice d({.jitter = 1e-3, .seed = seed});
    const EventId begin = d.event(), end = d.event();
    d.record(begin, DeviceLane::compute);
    for (int i = 0; i < 40; ++i) d.enqueue(DeviceLane::compute, [] {});
    d.record(end, DeviceLane::compute);
    d.finish();
    return d.seconds(end) - d.seconds(begin);
  };
  EXPECT_GT(slept(1), 1e-3);
}

}  // namespace
}  // namespace stretto

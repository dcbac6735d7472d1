#include "stretto/plan/inner/storage_wire.h"

#include <gtest/gtest.h>

namespace stretto {
namespace {

// Two pieces of a second each way, and a second of weight gradients.
StorageWire::Pieces two(double gather, double scatter) {
  const WirePiece one{.F = 0.5, .I = 0.5, .W = 0.5, .gather = gather, .gather_back = gather, .scatter = scatter};
  return {one, one};
}

TEST(StorageWire, AGatherGoesOnWhileThePieceBeforeWorks) {
  StorageWire quick, slow;
  quick.first(0.5);
  EXPECT_EQ(quick.forward(0, two(0.5, 0), 2, 0), 0.5 + 2) << "only the first is waited for";
  slow.first(3);
  EXPECT_EQ(slow.forward(0, two(3, 0), 2, 0), 3 + 3 + 1) << "the second is there three seconds after the first";
}

TEST(StorageWire, GradientsOfAPieceAreScatteredWhileTheNextAreMade) {
  StorageWire wire;
  const double end = wire.weights(0, two(0, 1.5), 2);
  EXPECT_EQ(end, 2.5) << "the second piece waits for the first one's";
  EXPECT_EQ(wire.settle(end), 4);
}

TEST(StorageWire, WhatTheSoftwareHidesIsNotWaitedFor) {
  StorageWire wire({.gathers = 0.75, .scatters = 1});
  wire.first(1);
  EXPECT_EQ(wire.forward(0, two(1, 0), 2, 0), 0.25 + 0.25 + 2);
  EXPECT_EQ(wire.weights(0, two(0, 5), 2), 2);
}

}  // namespace
}  // namespace stretto

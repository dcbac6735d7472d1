#include "stretto/plan/storage_wire.h"

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

WireTurn turn_of(const StorageWire::Pieces& pieces) {
  return {.chain = pieces, .forward = false, .alone = 4, .filled = 5, .weights = pieces, .seconds = 2, .inside = 2};
}

TEST(StorageWire, InGapsTheyAreMadeAndScatteredBesideWhatOthersWaitFor) {
  StorageWire wire;
  const StorageWire::Pieces pieces = two(0, 1.5);
  const TurnEnds ends = wire.turn(0, turn_of(pieces));
  EXPECT_EQ(ends.given, 5) << "both are made in gaps, which takes a second more";
  EXPECT_EQ(ends.all, 5) << "the first one's have come by then, at 2.5 + 1.5";
  EXPECT_EQ(wire.settle(ends.all), 5 + 1.5);
}

TEST(StorageWire, WeightGradientsOfTheirOwnTurnWaitForIt) {
  const StorageWire::Pieces pieces = two(0.5, 1.5);
  WireTurn turn = turn_of(pieces);
  turn.early = 10;
  StorageWire any, own;
  EXPECT_EQ(any.turn(10, turn).given, 10 + 4) << "all are made while a message is waited for";
  turn.own = true;
  EXPECT_EQ(own.turn(10, turn).given, 10 + 5);
}

TEST(StorageWire, WhatComesLateIsAddedBesideTheLastPiece) {
  const StorageWire::Pieces pieces = two(0, 0.25);
  WireTurn turn = turn_of(pieces);
  StorageWire any, late;
  any.turn(0, turn), late.turn(0, turn);
  turn.filled = 4, turn.inside = 4;  // so that the first piece has room for all
  EXPECT_EQ(any.turn(10, turn).all, 10 + 4) << "both have come long before the end";
  turn.late = true;
  EXPECT_EQ(late.turn(10, turn).all, 10 + 4);
  EXPECT_LT(any.settle(0), late.settle(0)) << "the second piece's were made later";
}

TEST(StorageWire, GradientsOfTwoPiecesExistAtATime) {
  StorageWire wire;
  const StorageWire::Pieces pieces = two(0, 10);
  const double first = wire.turn(0, turn_of(pieces)).all;
  EXPECT_EQ(first, 2.5 + 10) << "its last gradients are on their way";
  const TurnEnds next = wire.turn(first, turn_of(pieces));
  EXPECT_EQ(next.given, first + 2.5 + 2) << "the second piece's have no place yet";
  EXPECT_EQ(next.all, 2.5 + 3 * 10) << "one after the other on the wire";
}

TEST(StorageWire, WhatTheSoftwareHidesIsNotWaitedFor) {
  StorageWire wire({.gathers = 0.75, .scatters = 1});
  wire.first(1);
  EXPECT_EQ(wire.forward(0, two(1, 0), 2, 0), 0.25 + 0.25 + 2);
  EXPECT_EQ(wire.weights(0, two(0, 5), 2), 2);
}

}  // namespace
}  // namespace stretto

#include "stretto/run/inner/stragglers.h"

#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <vector>

namespace stretto {
namespace {
using testing::ElementsAre;
using testing::IsEmpty;

// What is said in steps 1 to `steps`, each with its step in front.
std::vector<std::string> said(Stragglers& s, int steps, const std::function<std::vector<double>(int)>& worked) {
  std::vector<std::string> all;
  for (int n = 1; n <= steps; ++n)
    for (const std::string& line : s.step(n, worked(n))) all.push_back(std::to_string(n) + " " + line);
  return all;
}

TEST(Stragglers, ARankOfAnActorIsComparedWithTheOthersOfIt) {
  Stragglers s(8, 4);
  const auto worked = [](int) { return std::vector{1.0, 1.01, 1.0, 1.18, 2.0, 2.0, 2.02, 2.0}; };
  EXPECT_THAT(said(s, 40, worked), ElementsAre("8 straggler: rank 3 +18% since step 1"));
}

TEST(Stragglers, AnActorOfOneRankIsComparedWithItsOwnBeginning) {
  Stragglers s(3, 1);
  const auto worked = [](int n) { return std::vector{1.0, n < 40 ? 3.0 : 3.6, 2.0}; };
  EXPECT_THAT(said(s, 80, worked), ElementsAre("47 straggler: rank 1 +20% since step 40"));
}

TEST(Stragglers, WhatAllShareOrIsOverSoonIsNotSaid) {
  Stragglers s(3, 1);
  EXPECT_THAT(said(s, 60, [](int n) { return std::vector<double>(3, n < 20 ? 1.0 : 1.5); }), IsEmpty());
  Stragglers t(4, 4);
  EXPECT_THAT(said(t, 60, [](int n) { return std::vector{1.0, n % 20 == 0 ? 1.5 : 1.0, 1.0, 1.0}; }), IsEmpty());
  Stragglers alone(1, 1);
  EXPECT_THAT(said(alone, 30, [](int n) { return std::vector{1.0 * n}; }), IsEmpty());
  Stragglers idle(2, 1);
  EXPECT_THAT(said(idle, 30, [](int) { return std::vector{0.0, 1.0}; }), IsEmpty());
}

TEST(Stragglers, WhoComesBackIsNamedAgain) {
  Stragglers s(2, 2);
  const auto worked = [](int n) { return std::vector{n > 20 && n <= 40 ? 1.3 : 1.0, 1.0}; };
  EXPECT_THAT(said(s, 60, worked), testing::SizeIs(1));
  EXPECT_THAT(said(s, 60, worked), testing::SizeIs(1));
}

}  // namespace
}  // namespace stretto

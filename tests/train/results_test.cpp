// What a step's numbers say, from numbers made by hand.
#include "stretto/train/results.h"

#include <gtest/gtest.h>

#include <limits>

namespace stretto {
namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();

// The layer that is believed, and how many rows it lost; "": none.
std::pair<std::string, double> lost_of(const std::vector<double>& rows) {
  std::vector<LostRows> layers;
  for (const double n : rows) layers.push_back({std::string(1, char('a' + layers.size())), n});
  const std::optional<LostRows> first = first_lost(layers);
  return first ? std::pair(first->layer, first->rows) : std::pair(std::string(), 0.0);
}

TEST(LostRows, TheFirstLayerThatLostAnyIsBelieved) {
  using Pair = std::pair<std::string, double>;
  EXPECT_EQ(lost_of({}), Pair("", 0));
  EXPECT_EQ(lost_of({0, 0}), Pair("", 0));
  EXPECT_EQ(lost_of({0, 3, 7}), Pair("b", 3));
  EXPECT_EQ(lost_of({3, none}), Pair("a", 3)) << "the second one reads what the first one lost";
  EXPECT_EQ(lost_of({0, 2, none, none}), Pair("b", 2));
  EXPECT_EQ(lost_of({none, none}), Pair("", 0)) << "more room would be no help";
  EXPECT_EQ(lost_of({0, none, 4}), Pair("", 0));
}

}  // namespace
}  // namespace stretto

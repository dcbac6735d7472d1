#include "stretto/base/text.h"

#include <gtest/gtest.h>

#include <limits>

namespace stretto {
namespace {

TEST(Human, Seconds) {
  EXPECT_EQ(human_seconds(2.5e-6), "2.5 us");
  EXPECT_EQ(human_seconds(0.0125), "12.5 ms");
  EXPECT_EQ(human_seconds(99), "99.0 s");
  EXPECT_EQ(human_seconds(125), "2m05s");
  EXPECT_EQ(human_seconds(7260), "2h01m");
  // Longer than an int has seconds.
  EXPECT_EQ(human_seconds(3e12), "3e+12 s");
  EXPECT_EQ(human_seconds(std::numeric_limits<double>::infinity()), "inf s");
}

TEST(Human, BytesAsDevicesHaveThem) {
  EXPECT_EQ(decimal_bytes(80e9), "80.0 GB");
  EXPECT_EQ(decimal_bytes(37.5e6), "37.5 MB");
  EXPECT_EQ(decimal_bytes(2e3), "2 kB");
  EXPECT_EQ(decimal_bytes(4), "4 B");
  EXPECT_EQ(decimal_bytes(0), "0");
}

TEST(Human, Counts) {
  EXPECT_EQ(human_count(950), "950");
  EXPECT_EQ(human_count(1234), "1.23k");
  EXPECT_EQ(human_count(3.1e14), "310T");
  EXPECT_EQ(human_count(2.5e18), "2500P");
  EXPECT_EQ(human_count(1e300), "1e+285P");
}

TEST(Nearest, SwappedLettersAreOneMistake) {
  EXPECT_EQ(edit_distance("bf61", "bf16"), 1);
  EXPECT_EQ(edit_distance("abcd", "acbd"), 1);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(nearest("bf61", std::vector<std::string>{"f32", "f64", "bf16"}), "bf16");
  EXPECT_EQ(nearest("layout", std::vector<std::string>{"f32", "f64"}), std::nullopt);
}

}  // namespace
}  // namespace stretto

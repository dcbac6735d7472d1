#include "stretto/base/philox.h"

#include <gtest/gtest.h>

namespace stretto {
namespace {

// Known answers published with the generator (philox4x32, 10 rounds).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Philox4{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t f = 0xffffffff;
  EXPECT_EQ(philox({f, f, f, f}, {f, f}), (Philox4{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Philox4{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, KeysDependOnSeedAndName) {
  EXPECT_NE(philox_key(1, "w"), philox_key(2, "w"));
  EXPECT_NE(philox_key(1, "w"), philox_key(1, "v"));
  EXPECT_EQ(philox_key(1, "w"), philox_key(1, "w"));
}

}  // namespace
}  // namespace stretto

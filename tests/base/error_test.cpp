#include "stretto/base/error.h"

#include <gtest/gtest.h>

namespace stretto {
namespace {

TEST(Error, SaysWhereWhatAndHint) {
  const Error e = Error("contract", "dim '{}' is {}", "ff", 2048).hint("rename {}", "ff");
  EXPECT_STREQ(e.what(), "[contract] dim 'ff' is 2048; hint: rename ff");
  EXPECT_EQ(e.exit_code(), 1);
}

TEST(Error, CarriesContextAndKind) {
  Error e = Error("gelu", "not finite").as(Error::Kind::run);
  e.within("rank 3, stage 1");
  EXPECT_STREQ(e.what(), "[gelu] not finite (rank 3, stage 1)");
  EXPECT_EQ(e.exit_code(), 3);
}

TEST(Error, RefuseThrowsAllFaults) {
  EXPECT_NO_THROW(refuse({}));
  try {
    refuse({fault("a", "h", "x {}", 1), fault("b", "", "y")});
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "[a] x 1; hint: h\n[b] y");
  }
}

TEST(Error, BrokenInvariantIsABug) {
  try {
    STRETTO_ASSERT(1 == 2, "arithmetic");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), Error::Kind::bug);
    EXPECT_EQ(e.exit_code(), 3);
  }
}

}  // namespace
}  // namespace stretto

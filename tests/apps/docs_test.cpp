#include <gtest/gtest.h>

#include "support/command.h"

namespace stretto::test {
namespace {

// What the docs show is what the executable says.
TEST(Docs, PicturesTablesAndOutputsAreUpToDate) {
  const Result r = shell("STRETTO=" STRETTO_BINARY "/stretto scripts/pictures --check", STRETTO_SOURCE);
  EXPECT_EQ(r.code, 0) << r.error << "scripts/pictures makes them anew";
}

}  // namespace
}  // namespace stretto::test

// The unwinder finds a function's frame by its address. A frame without a length, as g++ 12 makes them of parts of
// functions that are empty, hides the function that follows: an exception that goes through it ends in abort().
#include <gmock/gmock.h>

#include <regex>

#include "support/command.h"

namespace stretto::test {
namespace {

TEST(Frames, AllHaveALength) {
  const Result r = shell("readelf --debug-dump=frames " + binaries() + "/stretto | grep ' FDE '", "/");
  if (r.code != 0) GTEST_SKIP() << "there is no readelf: " << r.error;
  const std::regex frame("pc=([0-9a-f]+)\\.\\.([0-9a-f]+)");
  int seen = 0;
  for (std::sregex_iterator it(r.out.begin(), r.out.end(), frame), end; it != end; ++it, ++seen)
    EXPECT_NE((*it)[1], (*it)[2]);
  EXPECT_GT(seen, 1000);
}

}  // namespace
}  // namespace stretto::test

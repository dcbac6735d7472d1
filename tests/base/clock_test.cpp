#include "stretto/base/clock.h"

#include <gtest/gtest.h>

namespace stretto {
namespace {

TEST(Clock, SleepsUntilTheTimeHasCome) {
  const double start = now();
  sleep_until(start + 0.002);
  EXPECT_GE(now(), start + 0.002);
  sleep_until(start);  // long gone
}

}  // namespace
}  // namespace stretto

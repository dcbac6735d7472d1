#include "stretto/formats/fields.h"

#include <gtest/gtest.h>

#include "support/counted_new.h"

namespace stretto {
namespace {

// Whichever allocation of a copy fails, it leaves nothing behind and the original as it was.
TEST(Field, ACopyMayFindNoMemory) {
  const std::string text =
      R"({"a": ["a string that is longer than any that lies in place", 1, null, {"b": 2.5}], "c": {}})";
  for (const Field& whole :
       {read_json(text, "test"), Field(std::string(100, 'x')), Field(Field::Array(5)), Field(1.5)}) {
    const std::string before = write_json(whole);
    const long first = allocations;
    { const Field copy = whole; }
    const long count = allocations - first;
    for (long n = 1; n <= count; ++n) {
      fails_at = allocations + n;
      EXPECT_THROW(const Field copy = whole, std::bad_alloc) << n << " of " << count;
    }
    fails_at = 0;
    EXPECT_EQ(write_json(Field(whole)), before);
  }
}

}  // namespace
}  // namespace stretto

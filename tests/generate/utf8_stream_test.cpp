#include "stretto/generate/utf8_stream.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "stretto/formats/utf8.h"

namespace stretto {
namespace {

TEST(Utf8Stream, HoldsBackWhatIsNotFinished) {
  const std::string text = "aé€😀z";
  Utf8Stream stream;
  std::string out;
  for (const char c : text) {
    out += stream.push({&c, 1});
    EXPECT_FALSE(first_bad_utf8(out));
    EXPECT_EQ(out, text.substr(0, out.size()));
  }
  EXPECT_EQ(out + stream.finish(), text);
}

TEST(Utf8Stream, BadBytesAreReplaced) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("\xff"
                        "a\xc3"),
            "\xef\xbf\xbd"
            "a");
  EXPECT_EQ(stream.push("b"),
            "\xef\xbf\xbd"
            "b");
  EXPECT_EQ(stream.push("\xf0\x9f\x98"), "");
  EXPECT_EQ(stream.finish(), "\xef\xbf\xbd");
  EXPECT_EQ(stream.push("\xe0\x80"), "\xef\xbf\xbd\xef\xbf\xbd");  // overlong: no later byte can help
  EXPECT_EQ(stream.push("\xed\xa0"), "\xef\xbf\xbd\xef\xbf\xbd");  // a surrogate
  EXPECT_EQ(stream.finish(), "");
}

TEST(Utf8Stream, WhateverComesOutIsUtf8AndNothingIsHeldLong) {
  EXPECT_TRUE(rc::check([](const std::vector<std::string>& pieces) {
    Utf8Stream stream;
    std::string out;
    std::size_t in = 0;
    for (const std::string& p : pieces) {
      in += p.size();
      out += stream.push(p);
      RC_ASSERT(!first_bad_utf8(out));
      RC_ASSERT(out.size() + 3 >= in);  // a bad byte becomes three
    }
  }));
}

}  // namespace
}  // namespace stretto

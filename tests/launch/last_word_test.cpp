#include "stretto/launch/last_word.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace stretto {
namespace {

TEST(LastWord, IsReadAsItWasSaid) {
  EXPECT_FALSE(last_word_of(""));
  EXPECT_FALSE(last_word_of("1"));
  const auto word = last_word_of("3\n[a] b\n[c] d");
  ASSERT_TRUE(word);
  EXPECT_EQ(word->code, 3);
  EXPECT_EQ(word->why, "[a] b\n[c] d");
}

// A variable that is left over names a file that is none of ours.
TEST(LastWord, GoesIntoAPipeOnly) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::FILE* file = std::tmpfile();
  for (const int fd : {fileno(file), 1, 999, ends[1]}) {
    setenv(last_word_variable, std::to_string(fd).c_str(), 1);
    keep_last_word();
    EXPECT_EQ(std::getenv(last_word_variable), nullptr);
    say_last_word(2, "why");
    say_last_word(3, "a second one");
  }
  EXPECT_EQ(lseek(fileno(file), 0, SEEK_END), 0);
  char text[100];
  EXPECT_EQ(std::string(text, std::size_t(read(ends[0], text, sizeof text))), "2\nwhy");
  EXPECT_EQ(read(ends[0], text, sizeof text), 0) << "nobody has the other end any more";
  close(ends[0]);
  std::fclose(file);
}

}  // namespace
}  // namespace stretto

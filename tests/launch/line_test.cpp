#include "stretto/launch/inner/line.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stretto/base/error.h"
#include "stretto/launch/last_word.h"

namespace stretto {
namespace {

std::optional<Line> next_caller(const Switchboard& board) {
  pollfd fd{board.fd(), POLLIN, 0};
  poll(&fd, 1, 10000);
  return board.accept();
}

TEST(Line, CarriesWordsAndCommands) {
  const Switchboard board;
  Line guardian = Line::to(board.name());
  std::optional<Line> launch = next_caller(board);
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->other(), getpid());
  const std::string text = std::string("two\nlines and a ") + '\0' + " zero";
  ASSERT_TRUE(
      guardian.tell({.kind = Word::Kind::ended, .rank = 3, .number = 9, .time = 1.5, .told = true, .text = text}));
  ASSERT_TRUE(guardian.tell({.kind = Word::Kind::said, .rank = 3, .number = 1, .text = std::string(1000000, 'x')}));
  const auto ended = launch->word(), said = launch->word();
  ASSERT_TRUE(ended && said);
  EXPECT_EQ(ended->kind, Word::Kind::ended);
  EXPECT_EQ(ended->rank, 3);
  EXPECT_EQ(ended->number, 9);
  EXPECT_EQ(ended->time, 1.5);
  EXPECT_TRUE(ended->told);
  EXPECT_EQ(ended->text, text);
  EXPECT_EQ(said->text, std::string(16384, 'x'));
  ASSERT_TRUE(launch->tell(Command::stop));
  EXPECT_EQ(guardian.command(), Command::stop);
  launch->close();
  EXPECT_FALSE(guardian.command());
  EXPECT_FALSE(guardian.tell(Word{}));
}

TEST(Line, WhatWasToldBeforeTheEndIsHeard) {
  const Switchboard board;
  Line guardian = Line::to(board.name());
  const std::optional<Line> launch = next_caller(board);
  ASSERT_TRUE(launch && launch->tell(Command::end));
  ASSERT_TRUE(guardian.tell({.kind = Word::Kind::ended, .rank = 1}));
  guardian.close();  // with an order that it has not read
  const auto word = launch->word();
  ASSERT_TRUE(word);
  EXPECT_EQ(word->rank, 1);
  EXPECT_FALSE(launch->word());
}

TEST(Line, IsGoneWithTheLaunch) {
  std::string name;
  {
    const Switchboard board;
    name = board.name();
  }
  EXPECT_THROW(Line::to(name), Error);
}

TEST(Line, HearsNobodyElse) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  const Switchboard board;
  const pid_t other = fork();
  if (other == 0) {
    if (setuid(65534) != 0) _exit(2);
    try {
      Line::to(board.name());
      _exit(1);
    } catch (const Error&) {
      _exit(0);
    }
  }
  EXPECT_FALSE(next_caller(board));
  int status = 0;
  waitpid(other, &status, 0);
  EXPECT_EQ(status, 0) << "it has trusted a launch of somebody else";
}

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

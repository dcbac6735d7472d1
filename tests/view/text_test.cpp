#include "stretto/view/text.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <regex>
#include <sstream>

#include "sample.h"

namespace stretto {
namespace {

using Colour = TextOptions::Colour;

std::string without_colour(const std::string& s) { return std::regex_replace(s, std::regex("\x1b\\[[0-9;]*m"), ""); }

std::vector<std::string> lines_of(const std::string& s) {
  std::vector<std::string> lines;
  std::istringstream in(s);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::size_t columns(const std::string& s) {
  return std::size_t(std::count_if(s.begin(), s.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

TEST(GanttText, GoldenTinyOneForwardOneBackward) {
  EXPECT_EQ(gantt_text(sample::one_f_one_b(2, 3), {.width = 52}),
            "1f1b: makespan 12, bubble 25.0%, peak 2 activations\n"
            "         0         5         10    busy  peak\n"
            "actor 0  F0F1    B0--F2B1--  B2--   75%     2\n"
            "actor 1    F0B0--F1B1--F2B2--       75%     1\n"
            "F forward  B backward\n");
}

TEST(GanttText, ALinePerRank) {
  EXPECT_EQ(gantt_text(sample::with_ranks(sample::one_f_one_b(2, 3), 2), {.width = 60}),
            "1f1b: makespan 12, bubble 34.4%, peak 2 activations\n"
            "                0         5         10    busy  peak\n"
            "actor 0 rank 0  F0F1    B0--F2B1--  B2--   56%     2\n"
            "actor 0 rank 1  F0F1    B0--F2B1--  B2--   75%\n"
            "actor 1 rank 2    F0B0--F1B1--F2B2--       56%     1\n"
            "actor 1 rank 3    F0B0--F1B1--F2B2--       75%\n"
            "F forward  B backward\n");
  const std::string folded = gantt_text(sample::with_ranks(sample::one_f_one_b(2, 3), 16), {.width = 100});
  EXPECT_NE(folded.find("of 16 ranks per actor the busiest is drawn"), folded.npos) << folded;
  EXPECT_EQ(lines_of(folded).size(), 5u) << folded;
}

TEST(GanttText, DenseTimelinesShowLettersOnly) {
  const std::string text = gantt_text(sample::one_f_one_b(4, 60), {.width = 80});
  EXPECT_EQ(text.find("F1"), text.npos);
  EXPECT_NE(text.find("FB"), text.npos);
  // However narrow the actions are, a busy actor does not look idle.
  const Timeline narrow = sample::zb_h1(2, 2000);
  const std::string line = lines_of(gantt_text(narrow, {.width = 80}))[2];
  EXPECT_GE(std::count_if(line.begin(), line.end(), [](char c) { return c >= 'A' && c <= 'Z'; }), 50) << line;
  EXPECT_NE(gantt_text(narrow, {.width = 80, .colour = Colour::rgb}).find("\x1b[48;2;"), std::string::npos);
}

TEST(GanttText, FoldingNumbersEveryAction) {
  const std::string text = gantt_text(sample::one_f_one_b(4, 60), {.width = 80, .fold = true});
  for (int m = 0; m < 60; ++m) {
    EXPECT_NE(text.find("F" + std::to_string(m)), text.npos) << m;
    EXPECT_NE(text.find("B" + std::to_string(m)), text.npos) << m;
  }
  EXPECT_GT(lines_of(text).size(), 10u);
}

TEST(GanttText, OverlappedActionsStandOnLinesAboveEachOther) {
  Timeline t{.actors = 1, .stages = 2, .title = "pair"};
  t.spans = {{.start = 0, .end = 1, .action = Action{.microbatch = MicrobatchId(0)}},
             {.start = 1, .end = 4, .action = Action{.microbatch = MicrobatchId(1)}},
             {.start = 1, .end = 4, .action = Action{.phase = Phase::B, .stage = StageId(1)}}};
  const std::vector<std::string> lines = lines_of(gantt_text(t, {.width = 60}));
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_NE(lines[2].find("F0"), std::string::npos);
  EXPECT_NE(lines[2].find("F1"), std::string::npos);
  EXPECT_EQ(lines[2].find("B0"), std::string::npos);
  EXPECT_NE(lines[3].find("B0"), std::string::npos);
  EXPECT_EQ(lines[3].find('F'), std::string::npos);
}

TEST(GanttText, LanesAreShownOnRequest) {
  const Timeline t = sample::measured(2, 2);
  EXPECT_EQ(gantt_text(t).find("messages"), std::string::npos);
  const std::string text = gantt_text(t, {.clock = Clock::seconds, .lanes = true});
  EXPECT_NE(text.find("  messages"), text.npos);
  EXPECT_NE(text.find("  collectives"), text.npos);
  EXPECT_NE(text.find("update"), text.npos);
  EXPECT_NE(text.find(" ms"), text.npos);
}

TEST(GanttText, ColourChangesNoText) {
  const Timeline t = sample::zb_h1(4, 8);
  for (const Colour colour : {Colour::ansi256, Colour::rgb}) {
    const std::string text = gantt_text(t, {.width = 70, .colour = colour});
    EXPECT_NE(text.find(colour == Colour::rgb ? "\x1b[48;2;" : "\x1b[48;5;"), text.npos);
    const std::vector<std::string> coloured = lines_of(without_colour(text));
    const std::vector<std::string> plain = lines_of(gantt_text(t, {.width = 70}));
    ASSERT_EQ(coloured.size(), plain.size());
    EXPECT_EQ(coloured[1], plain[1]);
    for (const std::string& line : lines_of(text)) {
      const std::size_t last = line.rfind("\x1b[");
      EXPECT_TRUE(last == line.npos || line.substr(last, 4) == "\x1b[0m") << "a line must end without colour";
    }
  }
  EXPECT_EQ(gantt_text(t).find('\x1b'), std::string::npos);
}

TEST(GanttText, NoLineIsLongerThanTheWidth) {
  EXPECT_TRUE(rc::check([] {
    const int p = *rc::gen::inRange(1, 9), m = *rc::gen::inRange(1, 40), width = *rc::gen::inRange(0, 200);
    const Timeline t = *rc::gen::element(sample::one_f_one_b(p, m), sample::zb_h1(p, m), sample::measured(p, m),
                                         sample::looped_bfs(p, m, 2));
    const TextOptions o{.width = width,
                        .colour = *rc::gen::element(Colour::none, Colour::ansi256, Colour::rgb),
                        .lanes = *rc::gen::arbitrary<bool>(),
                        .fold = *rc::gen::arbitrary<bool>()};
    for (const std::string& line : lines_of(without_colour(gantt_text(t, o))))
      RC_ASSERT(columns(line) <= std::size_t(std::max(width, 40)));
  }));
}

TEST(GanttText, EmptyAndBrokenTimelinesAreNoProblem) {
  EXPECT_FALSE(gantt_text({}).empty());
  EXPECT_FALSE(gantt_text({.actors = 2}).empty());
  Timeline t{.actors = 1, .title = "line\nbreak"};
  t.spans = {{.start = 3, .end = 3, .label = "\x01\xff"}};
  EXPECT_EQ(lines_of(gantt_text(t))[0].substr(0, 10), "line break");
}

TEST(GanttText, PlainWhenTheStreamIsNoTerminal) {
  std::FILE* f = std::tmpfile();
  EXPECT_EQ(options_for(f).colour, Colour::none);
  std::fclose(f);
}

}  // namespace
}  // namespace stretto

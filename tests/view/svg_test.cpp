#include "stretto/view/svg.h"

#include <gtest/gtest.h>

#include <regex>

#include "markup.h"
#include "sample.h"

namespace stretto {
namespace {

using sample::count;
using sample::markup_fault;

TEST(Svg, OneNumberedBarPerAction) {
  const std::string text = svg(sample::one_f_one_b(4, 8));
  EXPECT_EQ(markup_fault(text, false), "");
  EXPECT_EQ(count(text, "<rect class=\"F0\""), 4 * 8 + 1);  // and the legend
  EXPECT_EQ(count(text, "<rect class=\"B0\""), 4 * 8 + 1);
  EXPECT_EQ(count(text, "class=\"l "), 2 * 4 * 8);
  EXPECT_NE(text.find("makespan 33, bubble 27.3%"), text.npos);
}

TEST(Svg, NumbersFitAtSixteenActorsAndSixtyFourMicrobatches) {
  const std::string text = svg(sample::one_f_one_b(16, 64));
  EXPECT_EQ(markup_fault(text, false), "");
  EXPECT_EQ(count(text, "class=\"l "), 2 * 16 * 64);
}

// As many bars as pixels, however many actions there are; together as wide as all of them.
TEST(Svg, BarsThatAreTooNarrowToBeSeenAreDrawnTogether) {
  const std::string text = svg(sample::one_f_one_b(2, 4000), {.width = 600});
  EXPECT_EQ(markup_fault(text, false), "");
  EXPECT_LE(count(text, "<rect class=\"F0\""), 2 * 600);
  double drawn = 0;
  static const std::regex bar(R"re(<rect class="[FB]0" x="[\d.]+" y="[\d.]+" width="([\d.]+)")re");
  for (std::sregex_iterator i(text.begin(), text.end(), bar), end; i != end; ++i) drawn += std::stod((*i)[1]);
  EXPECT_NEAR(drawn / (2 * 600), 0.7, 0.15);  // a part is for names and numbers, and for the gaps between bars
}

TEST(Svg, WorkThatWaitsIsPaler) {
  Timeline t = sample::one_f_one_b(1, 1);
  t.spans[0].waiting = 0.8 * (t.spans[0].end - t.spans[0].start);
  const std::string text = svg(t);
  EXPECT_EQ(markup_fault(text, false), "");
  EXPECT_EQ(count(text, "fill-opacity=\"0.4\""), 1);
}

// Embedded or alone, it follows the reader's light or dark: everything that is drawn with the page's colours has both.
TEST(Svg, HasColoursForDarkPages) {
  const std::string text = svg(sample::measured(3, 4), {.memory = true});
  const std::size_t dark = text.find("@media(prefers-color-scheme:dark){");
  ASSERT_NE(dark, text.npos);
  const std::string colours = text.substr(dark, text.find("}}", dark) - dark);
  for (const char* of : {".bg{fill:", ".row{fill:", ".grid{stroke:", ".t{fill:", ".n{fill:", ".s{fill:", ".mem{fill:"})
    EXPECT_NE(colours.find(of), colours.npos) << of;
}

TEST(Svg, RanksHaveRowsUntilTheyAreTooMany) {
  const std::string all = svg(sample::with_ranks(sample::one_f_one_b(2, 4), 4));
  EXPECT_EQ(markup_fault(all, false), "");
  EXPECT_EQ(count(all, "<rect class=\"F0\""), 2 * 4 * 4 + 1);
  EXPECT_NE(all.find(">actor 1 rank 7<"), all.npos);
  const std::string folded = svg(sample::with_ranks(sample::one_f_one_b(2, 4), 32));
  EXPECT_EQ(count(folded, "<rect class=\"F0\""), 2 * 4 + 1);
  EXPECT_NE(folded.find("of 32 ranks per actor the busiest is drawn"), folded.npos);
  EXPECT_NE(folded.find(">actor 1 rank 63<"), folded.npos);
}

TEST(Svg, StacksTimelinesOnOneAxis) {
  const std::vector<Timeline> both{sample::one_f_one_b(2, 4), sample::zb_h1(2, 4)};
  const std::string text = svg(both, {.memory = true});
  EXPECT_EQ(markup_fault(text, false), "");
  EXPECT_EQ(count(text, "class=\"t\""), 2);
  EXPECT_EQ(count(text, "class=\"mem\""), 4);
  // The same action at the same time stands at the same place in both.
  const std::size_t first = text.find("<rect class=\"F0\"", text.find(">1f1b<"));
  const std::size_t second = text.find("<rect class=\"F0\"", text.find(">zb-h1<"));
  const auto x = [&](std::size_t at) { return text.substr(text.find("x=", at), 12); };
  EXPECT_EQ(x(first), x(second));
}

TEST(Svg, ChunksHaveTheirOwnShade) {
  const std::string text = svg(sample::looped_bfs(2, 4, 2));
  EXPECT_EQ(count(text, "<rect class=\"F1\""), 2 * 4 + 1);
  EXPECT_NE(text.find(">chunk 1<"), text.npos);
}

TEST(Svg, MeasuredTimelinesShowTheirLanes) {
  const std::string text = svg(sample::measured(3, 4), {.clock = Clock::seconds});
  EXPECT_EQ(markup_fault(text, false), "");
  EXPECT_EQ(count(text, "<rect class=\"msg\""), 2 * 4 + 1);
  EXPECT_EQ(count(text, "<rect class=\"col\""), 3 + 1);
  EXPECT_NE(text.find(" ms<"), text.npos);
}

TEST(Svg, LabelsAreEscaped) {
  Timeline t = sample::one_f_one_b(1, 1);
  t.title = "a<b & \"c\" \x01\xff";
  t.memory_unit = "<units>";
  t.spans.push_back({.start = 3, .end = 30, .label = "</svg>"});
  const std::string text = svg(t);
  EXPECT_EQ(markup_fault(text, false), "");
  EXPECT_NE(text.find("a&lt;b &amp; &quot;c&quot;"), text.npos);
  EXPECT_EQ(count(text, "</svg>"), 1);
}

TEST(Svg, NothingToDrawIsStillAPicture) {
  for (const std::string& text : {svg(Timeline{}), svg(Timeline{.actors = 2}), svg(std::span<const Timeline>{})}) {
    EXPECT_EQ(markup_fault(text, false), "");
    EXPECT_EQ(text.find("nan"), text.npos);
    EXPECT_EQ(text.find("inf"), text.npos);
  }
}

TEST(Svg, TakesAGivenWidth) {
  EXPECT_NE(svg(sample::one_f_one_b(4, 8), {.width = 700}).find("width=\"700\""), std::string::npos);
}

}  // namespace
}  // namespace stretto

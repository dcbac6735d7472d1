#include "stretto/view/plan_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stretto {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(PlanPage, TheFrontHasWhatNothingBeatsInBoth) {
  const std::vector<PlanPoint> points{{.seconds = 2, .bytes = 5},
                                      {.seconds = 1, .bytes = 9},
                                      {.seconds = 3, .bytes = 6},
                                      {.seconds = 4, .bytes = 1},
                                      {.seconds = 1, .bytes = 8}};
  EXPECT_THAT(pareto_front(points), ElementsAre(4u, 0u, 3u));
  EXPECT_TRUE(pareto_front({}).empty());
}

TEST(PlanPage, HasAPictureOfEverythingThatIsGiven) {
  PlanPage page{
      .title = "a <plan>",
      .lines = {"first", "second & third"},
      .points = {{.seconds = 1, .bytes = 2e9, .group = 4, .kind = "zb-v", .label = "pipe 4", .compiled = true},
                 {.seconds = 1.5, .bytes = 1e9, .group = 1, .label = "pipe 1"}},
      .capacity = 3e9,
      .times = {{"best", {{"work", 0.9}, {"bubble", 0.1}, {"messages", 0}}}},
      .memory = {{"best", {{"parameters", 1e9}, {"activations", 1e9}}}},
      .seconds = 1,
      .swings = {{"network", 1.1, 0.95}, {"disk", 1.00001, 0.99999}}};
  const std::string text = plan_html(page);
  EXPECT_THAT(text, HasSubstr("a &lt;plan&gt;"));
  EXPECT_THAT(text, HasSubstr("<span>first\n</span><span>second &amp; third\n</span>"));
  EXPECT_THAT(text, HasSubstr("memory of a rank"));
  EXPECT_THAT(text, HasSubstr(">time of a step<"));
  EXPECT_THAT(text, HasSubstr(">memory of the fullest rank<"));
  EXPECT_THAT(text, HasSubstr(">0</text>"));  // where the axis begins, in whatever unit
  EXPECT_THAT(text, testing::AllOf(HasSubstr("</i>20% faster<"), HasSubstr("</i>20% slower<")));
  EXPECT_THAT(text, HasSubstr("Large and filled: compiled"));
  EXPECT_THAT(text, HasSubstr("</svg>zb-v</span>")) << "shapes are schedules";
  EXPECT_THAT(text, Not(HasSubstr("</i>messages<"))) << "no bar has any";
  EXPECT_THAT(text, HasSubstr("<title>pipe 4</title>"));
  EXPECT_THAT(text, HasSubstr("What a step is made of"));
  EXPECT_THAT(text, HasSubstr(">2.0 GB<"));
  EXPECT_THAT(text, HasSubstr("-5.0% .. +10.0%"));
  EXPECT_THAT(text, HasSubstr("0% .. 0%"));
  // Small models have megabytes, and names are as wide as they are.
  page.memory = {{std::string(100, 'x'), {{"parameters", 2e6}}}};
  EXPECT_THAT(plan_html(page), testing::AllOf(HasSubstr(">2 MB<"), HasSubstr("<text x=\"700.0\"")));
  // Bars far below the limit are drawn without it.
  EXPECT_THAT(plan_html({.title = "small", .capacity = 3e9, .memory = {{"best", {{"parameters", 2e6}}}}}),
              testing::AllOf(Not(HasSubstr("memory of a rank")), HasSubstr("width=\"620.0\"")));
  EXPECT_THAT(plan_html({.title = "empty"}), Not(HasSubstr("<svg")));
}

}  // namespace
}  // namespace stretto

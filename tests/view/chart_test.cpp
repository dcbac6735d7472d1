#include "stretto/view/chart.h"

#include <gmock/gmock.h>

#include <cmath>

namespace stretto {
namespace {

using testing::HasSubstr;
using testing::Not;

std::size_t count(const std::string& text, std::string_view what) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; at += what.size()) ++n;
  return n;
}

TEST(Chart, HoldsItsValuesForThePointer) {
  const std::string svg = curve_chart({.title = "a<b", .series = {{"training", {{1, 5.5}, {2, 4.25}}}}});
  EXPECT_THAT(svg, HasSubstr("<figcaption>a&lt;b</figcaption>"));
  EXPECT_THAT(svg, HasSubstr("&quot;x&quot;:[1,2],&quot;y&quot;:[5.5,4.25]"));
  EXPECT_THAT(svg, HasSubstr(">step</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("training</text>")));  // one curve needs no name
}

TEST(Chart, TheFirstSeriesIsNotCovered) {
  const std::string svg =
      curve_chart({.title = "loss", .series = {{"training", {{1, 2}, {2, 1}}}, {"validation", {{2, 1.5}}, true}}});
  EXPECT_LT(svg.find("curve s1"), svg.find("curve s0"));
  EXPECT_EQ(count(svg, "<circle"), 1u);
  EXPECT_THAT(svg, HasSubstr(">validation</text>"));
}

TEST(Chart, WhatIsNotFiniteIsLeftOut) {
  EXPECT_EQ(curve_chart({.title = "nothing", .series = {{"", {{1, NAN}, {2, INFINITY}}}}}), "");
  EXPECT_EQ(curve_chart({.title = "nothing"}), "");
  const std::string svg = curve_chart({.title = "some", .series = {{"", {{1, NAN}, {2, 3}}}}});
  EXPECT_THAT(svg, testing::AllOf(HasSubstr("[2]"), Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
}

TEST(Chart, ManyPointsAreThinned) {
  ChartSeries s{"", {}};
  for (int i = 0; i < 100'000; ++i) s.points.push_back({double(i), double(i % 7)});
  EXPECT_LT(curve_chart({.title = "long", .series = {s}}).size(), 30'000u);
}

}  // namespace
}  // namespace stretto

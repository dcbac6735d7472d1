#include "stretto/view/document.h"

#include <gmock/gmock.h>

#include <regex>

#include "stretto/view/chart.h"
#include "stretto/view/html.h"
#include "stretto/view/plan_page.h"

namespace stretto {
namespace {

// Every colour that a page asks for by name is one of the palette, in light and in dark.
TEST(Document, ColoursAreThoseOfThePalette) {
  const Timeline one{.actors = 1, .title = "one"};
  const std::string pages[] = {
      html(one), plan_html({.title = "a plan"}),
      html_document({.title = "curves",
                     .css = {prose_style, chart_style},
                     .body = curve_chart({.title = "loss", .series = {{"training", {{1, 2}, {2, 1}}}}})})};
  static const std::regex use(R"(var\((--[a-z0-9]+)\))");
  for (const std::string& page : pages) {
    int uses = 0;
    for (std::sregex_iterator it(page.begin(), page.end(), use), end; it != end; ++it, ++uses) {
      const std::string name = (*it)[1].str() + ": #";
      const std::size_t first = page.find(name);
      ASSERT_NE(first, page.npos) << name;
      EXPECT_NE(page.find(name, first + 1), page.npos) << name << " in the dark";
    }
    EXPECT_GT(uses, 5);
  }
}

TEST(Document, TitlesAreText) {
  EXPECT_THAT(html_document({.title = "a<b"}), testing::HasSubstr("<title>a&lt;b</title>"));
}

}  // namespace
}  // namespace stretto

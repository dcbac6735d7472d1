#include "stretto/view/html.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "markup.h"
#include "sample.h"

namespace stretto {
namespace {

using sample::count;
using sample::markup_fault;

nlohmann::json data_of(const std::string& page) {
  const std::string open = "id=\"data\">";
  const std::size_t from = page.find(open) + open.size();
  return nlohmann::json::parse(page.substr(from, page.find("</script>", from) - from));
}

TEST(Html, HoldsEveryActionAndWhatItWaitedFor) {
  const Timeline t = sample::one_f_one_b(4, 8);
  const std::string page = html(t);
  EXPECT_EQ(markup_fault(page, true), "");
  const nlohmann::json data = data_of(page);
  ASSERT_EQ(data["timelines"].size(), 1u);
  const nlohmann::json& line = data["timelines"][0];
  EXPECT_EQ(line["length"], 33);
  EXPECT_EQ(line["memory"].size(), 4u);
  ASSERT_EQ(line["tracks"].size(), 4u);
  std::size_t bars = 0;
  bool waited = false;
  for (const nlohmann::json& track : line["tracks"])
    for (const nlohmann::json& b : track["bars"]) {
      ++bars;
      ASSERT_EQ(b.size(), 9u);
      EXPECT_LT(b[2].get<std::size_t>(), data["styles"].size());
      for (const int field : {5, 6, 7}) EXPECT_LT(b[field].get<std::size_t>(), data["strings"].size());
      waited = waited || data["strings"][b[7].get<std::size_t>()] == "message 0F0 from actor 0";
    }
  EXPECT_EQ(bars, t.spans.size());
  EXPECT_TRUE(waited);
  EXPECT_EQ(page.find("how long each kind"), page.npos) << "one timeline has nothing to differ from";
}

TEST(Html, IsSelfContained) {
  const std::string page = html(sample::one_f_one_b(2, 2));
  EXPECT_EQ(page.find("http"), page.npos);
  EXPECT_EQ(page.find(" src="), page.npos);
  EXPECT_EQ(page.find("<link"), page.npos);
}

TEST(Html, ComparesTimelinesPerKind) {
  const std::vector<Timeline> both{sample::one_f_one_b(4, 8), sample::zb_h1(4, 8)};
  const std::string page = html(both, {.title = "two"});
  EXPECT_EQ(markup_fault(page, true), "");
  EXPECT_NE(page.find("<title>two</title>"), page.npos);
  EXPECT_NE(page.find("zb-h1 beside 1f1b: how long each kind of work takes"), page.npos);
  EXPECT_NE(page.find("<td>22.2%</td>"), page.npos);  // 33 against 27
  EXPECT_NE(page.find("<td>is the best</td>"), page.npos);
}

TEST(Html, MeasuredTimelinesHaveLanesSecondsAndBytes) {
  const std::string page = html(sample::measured(2, 2), {.clock = Clock::seconds});
  const nlohmann::json data = data_of(page);
  EXPECT_TRUE(data["seconds"].get<bool>());
  EXPECT_EQ(data["timelines"][0]["unit"], "bytes");
  EXPECT_EQ(data["timelines"][0]["tracks"].size(), 7u);  // compute, messages (actor 0), collectives, other
  EXPECT_NE(page.find("MiB"), page.npos);
}

TEST(Html, HasEveryRank) {
  const nlohmann::json data = data_of(html(sample::with_ranks(sample::one_f_one_b(2, 4), 32)));
  EXPECT_EQ(data["timelines"][0]["ranks"], 32);
  ASSERT_EQ(data["timelines"][0]["tracks"].size(), 64u);
  EXPECT_EQ(data["timelines"][0]["tracks"][63]["name"], "actor 1 rank 63");
  int stand = 0;
  for (const auto& track : data["timelines"][0]["tracks"]) stand += track["stands"].get<bool>();
  EXPECT_EQ(stand, 2);
}

TEST(Html, LabelsCannotBreakOut) {
  Timeline t = sample::one_f_one_b(1, 1);
  t.title = "</script><script>alert(1)</script>\xff";
  t.spans[0].waited = "</script>\"\\\n";
  t.memory_unit = "<b>";
  const std::string page = html(t);
  EXPECT_EQ(markup_fault(page, true), "");
  EXPECT_EQ(count(page, "<script"), 2);
  EXPECT_EQ(count(page, "</script>"), 2);
  const nlohmann::json data = data_of(page);
  EXPECT_NE(data["strings"].dump(-1, ' ', false).find("</script>"), std::string::npos);
}

TEST(Html, NothingToDrawIsStillAPage) {
  for (const std::string& page : {html(Timeline{}), html(Timeline{.actors = 2}), html(std::span<const Timeline>{})}) {
    EXPECT_EQ(markup_fault(page, true), "");
    EXPECT_NO_THROW(data_of(page));
  }
}

}  // namespace
}  // namespace stretto

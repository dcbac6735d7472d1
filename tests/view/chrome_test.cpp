#include "stretto/view/chrome.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "sample.h"

namespace stretto {
namespace {

using Json = nlohmann::json;
using Thread = std::pair<int, int>;

std::int64_t nano(const Json& micro) { return std::llround(micro.get<double>() * 1000); }

std::map<Thread, std::vector<std::pair<std::int64_t, std::int64_t>>> slices_of(const Json& trace) {
  std::map<Thread, std::vector<std::pair<std::int64_t, std::int64_t>>> slices;
  for (const Json& e : trace["traceEvents"])
    if (e["ph"] == "X") slices[{e["pid"], e["tid"]}].emplace_back(nano(e["ts"]), nano(e["ts"]) + nano(e["dur"]));
  return slices;
}

bool nests(std::vector<std::pair<std::int64_t, std::int64_t>> slices) {
  std::sort(slices.begin(), slices.end(), [](const auto& a, const auto& b) {
    return a.first < b.first || (a.first == b.first && a.second > b.second);
  });
  std::vector<std::int64_t> open;
  for (const auto& [start, end] : slices) {
    while (!open.empty() && open.back() <= start) open.pop_back();
    if (!open.empty() && open.back() < end) return false;
    open.push_back(end);
  }
  return true;
}

TEST(ChromeTrace, OneProcessPerActorOneThreadPerLane) {
  const Json trace = Json::parse(chrome_trace(sample::measured(3, 4), Clock::seconds));
  std::set<int> processes;
  std::map<int, std::string> names;
  for (const Json& e : trace["traceEvents"]) {
    if (e["ph"] == "M" && e["name"] == "process_name") processes.insert(e["pid"].get<int>());
    if (e["ph"] == "M" && e["name"] == "thread_name") names[e["tid"]] = e["args"]["name"];
  }
  EXPECT_EQ(processes, (std::set<int>{0, 1, 2}));
  EXPECT_EQ(names.at(0), "compute");
  EXPECT_EQ(names.at(1), "messages");
  EXPECT_EQ(names.at(2), "collectives");
  EXPECT_EQ(names.at(3), "other work");
  for (const auto& [thread, slices] : slices_of(trace)) EXPECT_TRUE(nests(slices));
}

TEST(ChromeTrace, SlicesCarryTheirActionAndTime) {
  const Json trace = Json::parse(chrome_trace(sample::one_f_one_b(2, 2)));
  bool found = false;
  for (const Json& e : trace["traceEvents"])
    if (e["ph"] == "X" && e["name"] == "1B0") {
      found = true;
      EXPECT_EQ(e["cat"], "B");
      EXPECT_EQ(e["pid"], 1);
      EXPECT_EQ(e["ts"], 2000);  // a unit is a millisecond
      EXPECT_EQ(e["dur"], 2000);
      EXPECT_EQ(e["args"]["stage"], 1);
      EXPECT_EQ(e["args"]["microbatch"], 0);
    }
  EXPECT_TRUE(found);
}

TEST(ChromeTrace, ArrowsLeadFromProducerToConsumer) {
  const Json trace = Json::parse(chrome_trace(sample::one_f_one_b(4, 8)));
  std::map<int, std::int64_t> sent, received;
  for (const Json& e : trace["traceEvents"]) {
    if (e["ph"] == "s") sent[e["id"]] = nano(e["ts"]);
    if (e["ph"] == "f") received[e["id"]] = nano(e["ts"]);
  }
  EXPECT_EQ(sent.size(), 2u * 3 * 8);  // forward and backward over three edges
  ASSERT_EQ(sent.size(), received.size());
  for (const auto& [id, at] : sent) EXPECT_LE(at, received.at(id));
}

TEST(ChromeTrace, MemoryIsACounter) {
  const Timeline t = sample::one_f_one_b(2, 3);
  std::size_t changes = 0, counters = 0;
  for (const auto& curve : t.memory) changes += curve.size();
  const Json trace = Json::parse(chrome_trace(t));
  for (const Json& e : trace["traceEvents"]) counters += e["ph"] == "C";
  EXPECT_EQ(counters, changes);
}

TEST(ChromeTrace, SecondTimelineGetsFurtherProcesses) {
  const std::vector<Timeline> both{sample::one_f_one_b(2, 2), sample::zb_h1(2, 2)};
  const Json trace = Json::parse(chrome_trace(both));
  std::map<int, std::string> names;
  for (const Json& e : trace["traceEvents"])
    if (e["name"] == "process_name") names[e["pid"]] = e["args"]["name"];
  EXPECT_EQ(names.size(), 4u);
  EXPECT_EQ(names.at(3), "zb-h1: actor 1");
}

// Whatever spans there are: every one becomes a slice, and slices nest on every thread.
TEST(ChromeTrace, CrossingSpansGoToThreadsOfTheirOwn) {
  EXPECT_TRUE(rc::check([] {
    Timeline t{.actors = 2, .stages = 2};
    const int n = *rc::gen::inRange(0, 40);
    for (int i = 0; i < n; ++i) {
      const double start = *rc::gen::inRange(0, 3000) / 700.0;
      t.spans.push_back({.actor = *rc::gen::inRange(0, 2),
                         .lane = Lane(*rc::gen::inRange(0, 4)),
                         .start = start,
                         .end = start + *rc::gen::inRange(0, 2000) / 900.0,
                         .label = "s"});
    }
    std::size_t total = 0;
    for (const auto& [thread, slices] : slices_of(Json::parse(chrome_trace(t, Clock::seconds)))) {
      RC_ASSERT(nests(slices));
      total += slices.size();
    }
    RC_ASSERT(total == std::size_t(n));
  }));
}

TEST(ChromeTrace, LabelsAreEscaped) {
  Timeline t{.actors = 1, .title = "\"\\"};
  t.spans = {{.start = 0, .end = 1, .label = "a\"b\\\n\xff", .waited = "\"}"}};
  const Json trace = Json::parse(chrome_trace(t));
  for (const Json& e : trace["traceEvents"]) EXPECT_TRUE(e["ph"] != "X" || e["args"]["waited for"] == "\"}");
}

TEST(ChromeTrace, EmptyIsValid) {
  EXPECT_TRUE(Json::parse(chrome_trace(Timeline{}))["traceEvents"].empty());
  EXPECT_TRUE(Json::parse(chrome_trace(std::span<const Timeline>{}))["traceEvents"].empty());
}

}  // namespace
}  // namespace stretto

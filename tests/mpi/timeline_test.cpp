// A measured step of several processes: every rank has its lanes in what the first one writes.
#include <nlohmann/json.hpp>

#include "processes.h"

namespace stretto {
namespace {

using TimelineOfProcesses = test::Processes;

TEST_F(TimelineOfProcesses, HasEveryRank) {
  const test::Result r =
      launch(4, "train small.toml --parallel.pipe=2 --parallel.data=2 --train.steps=3 --log.timeline=2 --log.dir=run");
  ASSERT_EQ(r.code, 0) << r.error << log(0);
  EXPECT_THAT(r.out, testing::HasSubstr("\nactor 1 rank 3"));
  std::map<int, std::string> names;
  std::map<std::pair<int, std::string>, int> kinds;  // of a rank's slices
  double last = 0;
  const nlohmann::json trace = nlohmann::json::parse(test::text_of(folder_ / "run/timeline.json"));
  for (const auto& e : trace["traceEvents"]) {
    if (e["name"] == "process_name") names[e["pid"]] = e["args"]["name"];
    if (e["ph"] != "X") continue;
    ++kinds[{e["pid"], e["cat"]}];
    last = std::max(last, e["ts"].get<double>() + e["dur"].get<double>());
  }
  EXPECT_EQ(names.size(), 4u);
  EXPECT_EQ(names[3], "actor 1 rank 3");
  for (const int rank : {0, 1, 2, 3}) {
    EXPECT_GT((kinds[{rank, "F"}]), 0) << rank;
    EXPECT_GT((kinds[{rank, "messages"}]), 0) << rank;
    EXPECT_GT((kinds[{rank, "collectives"}]), 0) << rank;
  }
  EXPECT_LT(last, 60e6) << "microseconds: all of them have one clock";
}

}  // namespace
}  // namespace stretto

// A schedule of one's own: a function that fills rows, a name for it, and what it will cost before anything runs.
//
//   custom_schedule [actors] [microbatches]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/base/text.h"
#include "stretto/schedule/builders.h"
#include "stretto/simulate/simulate.h"

using namespace stretto;

// 1F1B with the backward split in two: the input gradient leaves before the weight gradient is computed, so that the
// actor it goes to need not wait for both. looped(r) gives the placement (stage s on actor s); we fill the rows.
Schedule patient(const Request& r) {
  Schedule s = looped(r);
  for (int a = 0; a < r.actors; ++a) {
    Row& row = s.rows[a];
    const int last = r.microbatches, warm = std::min(r.actors - a - 1, last);
    int f = 0, i = 0, w = 0;
    while (f < warm) row.F(a, f++);
    while (f < last) row.F(a, f++).I(a, i++).W(a, w++);
    while (i < last) row.I(a, i++).W(a, w++);
  }
  return s;
}

int main(int argc, char** argv) try {
  const Request request{.actors = argc > 1 ? std::atoi(argv[1]) : 4, .microbatches = argc > 2 ? std::atoi(argv[2]) : 8};
  register_schedule("patient", patient);  // from here on `parallel.schedule = "patient"` finds it too

  fmt::print("{}\n", build_schedule("patient", request).str());

  const Times times{.F = 1, .I = 1, .W = 1, .message = 0.1};
  std::vector<std::vector<std::string>> rows{{"schedule", "makespan", "period", "bubble", "peak"}};
  for (const char* name : {"1f1b", "patient", "zb-h1"}) {
    const Prediction p = simulate(build_schedule(name, request), {.times = times});
    rows.push_back({name, fmt::format("{:.1f}", p.makespan), fmt::format("{:.1f}", p.period),
                    fmt::format("{:.1f}%", 100 * p.bubble),
                    fmt::format("{:.1f}", *std::max_element(p.peak.begin(), p.peak.end()))});
  }
  fmt::print("{}", table(rows));
  return 0;
} catch (const Error& e) {
  fmt::print(stderr, "{}\n", e.what());
  return e.exit_code();
}

// How long it takes to build, validate, prove and simulate large schedules, on one core: four sizes of one schedule,
// which must grow linearly, then every builder at the largest size.
//
//   schedules [actors] [largest number of microbatches]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/base/text.h"
#include "stretto/schedule/builders.h"
#include "stretto/schedule/prove.h"
#include "stretto/schedule/validate.h"
#include "stretto/simulate/simulate.h"

using namespace stretto;

namespace {

// Milliseconds of processor time of one call, the least of three: everything here runs on one core.
template <class F>
double milliseconds(F&& f) {
  double best = 1e300;
  for (int k = 0; k < 3; ++k) {
    const std::clock_t start = std::clock();
    f();
    best = std::min(best, 1e3 * double(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return best;
}

std::vector<std::string> line(std::string name, const Request& r) {
  const Times times{.message = 0.1};
  Schedule s;
  const double build = milliseconds([&] { s = build_schedule(name, r); });
  const double check = milliseconds([&] { refuse(validate(s).all_faults()); });
  std::optional<int> capacity;
  const double proof = milliseconds([&] { capacity = prove(s).smallest; });
  const double play = milliseconds([&] { simulate(s, {.times = times, .timeline = false}); });
  const double trace = milliseconds([&] { simulate(s, {.times = times}); });
  const double total = build + check + proof + trace;
  const auto cell = [](double x) { return fmt::format("{:.1f}", x); };
  return {name,
          std::to_string(r.microbatches),
          std::to_string(s.actions()),
          cell(build),
          cell(check),
          cell(proof),
          cell(play),
          cell(trace),
          cell(total),
          fmt::format("{:.0f}", 1e6 * total / double(s.actions())),
          capacity ? std::to_string(*capacity) : "none"};
}

}  // namespace

int main(int argc, char** argv) try {
  const int actors = argc > 1 ? std::atoi(argv[1]) : 64, largest = argc > 2 ? std::atoi(argv[2]) : 512;
  const std::vector<std::string> header{"schedule",    "microbatches", "actions",    "build ms",
                                        "validate ms", "prove ms",     "numbers ms", "timeline ms",
                                        "total ms",    "ns/action",    "capacity"};
  std::vector<std::vector<std::string>> sizes{header}, all{header};
  for (const int part : {8, 4, 2, 1}) {
    sizes.push_back(line("interleaved-zb", {.actors = actors, .microbatches = largest / part, .chunks = 4}));
  }
  fmt::print("{} actors, 4 chunks each; total = build + validate + prove + simulate with timeline\n{}\n", actors,
             table(sizes));
  for (const BuilderEntry& e : schedule_builders()) {
    const int chunks = e.chunks == any_chunks ? 4 : 0;
    all.push_back(line(std::string(e.name), {.actors = actors, .microbatches = largest, .chunks = chunks}));
  }
  fmt::print("every builder at {} microbatches\n{}", largest, table(all));
  return 0;
} catch (const Error& e) {
  fmt::print(stderr, "{}\n", e.what());
  return e.exit_code();
}

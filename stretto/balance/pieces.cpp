#include "stretto/balance/pieces.h"

#include <map>

#include "stretto/fuse/cost.h"

namespace stretto {

std::vector<PieceTimes> piece_times(const Step& step, const Machine& machine) {
  std::vector<PieceTimes> times(step.pieces);
  std::map<const Graph*, double> known;  // equal pieces share their bodies
  for (const Task& t : step.tasks) {
    if (!of_an_action(t.part)) continue;
    const auto [at, fresh] = known.try_emplace(t.body.get());
    if (fresh) at->second = seconds_of(*t.body, machine);
    PieceTimes& of = times[t.piece->value];
    (t.part == Part::F ? of.F : t.part == Part::R ? of.R : t.part == Part::I ? of.I : of.W) += at->second;
  }
  return times;
}

std::vector<PieceTimes> scaled_to(std::vector<PieceTimes> times, const std::vector<double>& seconds) {
  for (std::size_t i = 0; i < times.size(); ++i) {
    PieceTimes& t = times[i];
    const double by = t.microbatch() > 0 ? seconds[i] / t.microbatch() : 0;
    t = by > 0 ? PieceTimes{t.F * by, t.R * by, t.I * by, t.W * by} : PieceTimes{.F = seconds[i]};
  }
  return times;
}

}  // namespace stretto

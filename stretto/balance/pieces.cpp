#include "stretto/balance/pieces.h"

#include <map>

#include "stretto/fuse/cost.h"

namespace stretto {

std::vector<PieceTimes> piece_times(const Step& step, const Machine& machine) {
  std::vector<PieceTimes> times(step.pieces / step.segments);
  std::map<const Graph*, double> known;  // equal pieces share their bodies
  for (const Task& t : step.tasks) {
    if (!of_an_action(t.part)) continue;
    const auto [at, fresh] = known.try_emplace(t.body.get());
    if (fresh) at->second = seconds_of(*t.body, machine);
    PieceTimes& of = times[t.piece->value / step.segments];
    (t.part == Part::F ? of.F : t.part == Part::R ? of.R : t.part == Part::I ? of.I : of.W) += at->second;
  }
  return times;
}

std::vector<PieceTimes> as_measured(std::vector<PieceTimes> times, const std::vector<MeasuredPiece>& measured,
                                    double slower) {
  for (std::size_t i = 0; i < times.size(); ++i) {
    PieceTimes& t = times[i];
    const MeasuredPiece& m = measured[i];
    if (t.F > 0) t.R *= m.F * slower / t.F;
    t.F = m.F * slower, t.I = m.I * slower, t.W = m.W * slower;
  }
  return times;
}

std::vector<u64> kinds_of_pieces(const Step& step) {
  std::vector<u64> kinds(step.pieces, 0);
  for (const Task& t : step.tasks)
    if (t.part == Part::F) kinds[t.piece->value] = t.body->hash();
  return kinds;
}

}  // namespace stretto

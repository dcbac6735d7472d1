// Stages on actors of their own, with times and rows by hand.
#pragma once
#include <algorithm>
#include <deque>

#include "stretto/plan/arranged.h"

namespace stretto::test {

// One call per task, or three: a collective that goes on for so long, between two of a second.
struct HandTimes {
  double F = 1, I = 1, W = 1, A = 0;
  double talks_F = 0, talks_I = 0;
};
inline PieceWork piece_of(const HandTimes& t) {
  PieceWork work;
  const auto fill = [&](Part part, double seconds, double talks) {
    PartWork& p = work[part];
    p.calls.push_back({.seconds = seconds, .chained = part != Part::W, .gathered = part == Part::F || part == Part::I});
    if (part == Part::W) p.calls[0].after = {{Part::I, 0}};
    if (talks == 0) return;
    p.calls.push_back({.seconds = talks, .link = 0, .after = {{part, 0}}});
    p.calls.push_back({.seconds = 1, .after = {{part, 1}}});
    p.gives = 2;
  };
  fill(Part::F, t.F, t.talks_F), fill(Part::I, t.I, t.talks_I), fill(Part::W, t.W, 0);
  if (t.A > 0) work[Part::A].calls = {{.seconds = t.A}};
  return work;
}

struct HandPipe {
  std::deque<PieceWork> works = {};
  StagePieces stages = {};
  TurnOptions options = {};
  Link link = {};
  double message = 0;
  Schedule schedule = {};
  HandPipe(const std::vector<std::vector<HandTimes>>& all, const std::vector<Row>& rows) {
    IdVector<StageId, ActorId> places;
    for (const std::vector<HandTimes>& times : all) {
      places.push_back(ActorId(std::min(places.size(), rows.size() - 1)));
      std::vector<StagePiece>& stage = stages[stages.push_back({})];
      for (const HandTimes& t : times) stage.push_back({&works.emplace_back(piece_of(t))});
    }
    schedule.stages = all.size(), schedule.microbatches = 4;
    schedule.actor_of.push_back(places);
    for (const Row& r : rows) schedule.rows.push_back(r);
  }
  HandPipe(const HandPipe&) = delete;
  ArrangedPlayer player() const {
    return ArrangedPlayer(
        stages, options, [l = link](int, int) { return l; }, message);
  }
  PlayedEnds ends(const std::optional<Arrangement>& way) const { return player().ends(schedule, way); }
  std::vector<double> last(const std::optional<Arrangement>& way) const { return ends(way).last; }
};

}  // namespace stretto::test

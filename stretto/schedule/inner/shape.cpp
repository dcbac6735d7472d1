#include "stretto/schedule/inner/shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace stretto {

namespace {

using Stages = std::set<std::pair<PipeId, StageId>>;

Stages with_actions(const Schedule& s) {
  Stages found;
  for (const Row& row : s.rows)
    for (const Action& a : row) found.insert({a.pipe, a.stage});
  return found;
}

}  // namespace

void check_shape(const Schedule& s, const ValidateOptions& o, Validation& v) {
  auto wrong = [&](std::string where, std::string hint, std::string what) {
    v.faults.push_back({Finding::Kind::shape, {std::move(where), std::move(what), std::move(hint)}, {}});
  };
  if (s.rows.empty()) wrong("rows", "add one row per actor", "the schedule has no rows");
  if (o.actors > 0 && !s.rows.empty() && s.actors() != o.actors) {
    wrong("rows", fmt::format("write one row per actor, or ask for {} actors", s.actors()),
          fmt::format("{} rows for {} actors", s.actors(), o.actors));
  }
  if (o.stages > 0 && s.stages != o.stages) {
    wrong("stages", fmt::format("ask for {} stages, or change the schedule", s.stages),
          fmt::format("the schedule has {} stages, {} were asked for", s.stages, o.stages));
  }
  if (o.microbatches > 0 && s.microbatches != o.microbatches) {
    wrong("microbatches", fmt::format("ask for {} microbatches, or change the schedule", s.microbatches),
          fmt::format("the schedule has {} microbatches, {} were asked for", s.microbatches, o.microbatches));
  }
  if (s.stages < 1 || s.stages > 1 << 16)
    wrong("stages", "1 to 65536 are possible", fmt::format("{} stages", s.stages));
  if (s.microbatches < 1) wrong("microbatches", "give at least 1", fmt::format("{} microbatches", s.microbatches));
  if (s.segments < 1 || s.segments > 1 << 16)
    wrong("segments", "1 to 65536 are possible", fmt::format("{} sequence segments", s.segments));
  if (s.pipes() < 1 || s.pipes() > 2) {
    wrong("placement", "one placement, or two of a bidirectional schedule", fmt::format("{} placements", s.pipes()));
  }
  if (s.actors() > most_actors)
    wrong("rows", fmt::format("at most {} are possible", most_actors), fmt::format("{} rows", s.actors()));
  std::optional<Stages> worked;
  for (const PipeId pipe : s.actor_of.ids()) {
    const auto& placement = s.actor_of[pipe];
    if (std::ssize(placement) != std::max(0, s.stages)) {
      wrong("placement", "name the actor of every stage",
            fmt::format("{} stages are placed, the schedule has {}", placement.size(), s.stages));
      continue;
    }
    for (const StageId stage : placement.ids()) {
      if (s.rows.has(placement[stage])) continue;
      if (!worked) worked = with_actions(s);
      const std::size_t number = stage.value + pipe.value * placement.size();
      wrong(fmt::format("stage {}", number), "add the stage's actions to a row, or a row to the schedule",
            worked->contains({pipe, stage})
                ? fmt::format("the stage is placed on actor {}, there are {} rows", placement[stage].value, s.actors())
                : "no row has actions of the stage");
    }
  }
}

}  // namespace stretto

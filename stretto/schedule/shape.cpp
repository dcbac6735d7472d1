#include "stretto/schedule/shape.h"

#include <fmt/format.h>

#include <algorithm>

namespace stretto {

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
  if (s.pieces < 1 || s.pieces > 1 << 16)
    wrong("pieces", "1 to 65536 are possible", fmt::format("{} sequence pieces", s.pieces));
  if (s.pipes() < 1 || s.pipes() > 2) {
    wrong("placement", "one placement, or two of a bidirectional schedule", fmt::format("{} placements", s.pipes()));
  }
  for (int pipe = 0; pipe < s.pipes(); ++pipe) {
    const auto& placement = s.actor_of[pipe];
    if (std::ssize(placement) != std::max(0, s.stages)) {
      wrong("placement", "name the actor of every stage",
            fmt::format("{} stages are placed, the schedule has {}", placement.size(), s.stages));
      continue;
    }
    for (std::size_t stage = 0; stage < placement.size(); ++stage) {
      if (placement[stage] >= 0 && placement[stage] < s.actors()) continue;
      const std::size_t number = stage + pipe * placement.size();
      wrong(fmt::format("stage {}", number), "add the stage's actions to a row, or a row to the schedule",
            placement[stage] < 0
                ? "no row has actions of the stage"
                : fmt::format("the stage is placed on actor {}, there are {} rows", placement[stage], s.actors()));
    }
  }
}

}  // namespace stretto

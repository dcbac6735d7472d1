#include "stretto/step/keeps.h"

#include <algorithm>
#include <map>

#include "stretto/step/storage.h"

namespace stretto {

IdVector<StageId, StageKeeps> keeps(const Step& s, const IdVector<PieceId, StageId>& stage_of) {
  IdVector<StageId, StageKeeps> all(stage_of.empty() ? 0 : stage_of.back().value + 1);
  for (ValueId v : s.values.ids()) {
    if (of_storage(s, v)) continue;
    const StageId home = stage_of[*s.tasks[s.values[v].producer].piece];
    std::map<StageId, std::pair<Part, Part>> span;  // per stage: the first phase that makes or reads it, and the last
    const auto touch = [&](TaskId task) {
      const Part part = s.tasks[task].part;
      const auto [it, fresh] = span.try_emplace(stage_of[*s.tasks[task].piece], part, part);
      it->second = {std::min(it->second.first, part), std::max(it->second.second, part)};
    };
    touch(s.values[v].producer);
    for (TaskId c : s.values[v].consumers) touch(c);
    for (const auto& [stage, phases] : span) {
      const auto [from, until] = phases;
      if (from == until) continue;
      StageKeeps& k = all[stage];
      k.values.push_back({v, from, until, stage != home});
      if (from == Part::F)
        (until == Part::W ? k.until_w : k.until_i) += s.values[v].bytes;
      else if (until == Part::W)
        k.for_w += s.values[v].bytes;
    }
  }
  return all;
}

}  // namespace stretto

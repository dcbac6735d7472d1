#include "stretto/stage/keeps.h"

#include <algorithm>
#include <map>

#include "stretto/stage/storage.h"

namespace stretto {

std::vector<StageKeeps> keeps(const Step& s, const std::vector<int>& stage_of) {
  std::vector<StageKeeps> all(stage_of.empty() ? 0 : std::size_t(stage_of.back()) + 1);
  for (std::uint32_t v = 0; v < s.values.size(); ++v) {
    if (of_storage(s, v)) continue;
    const int home = stage_of[s.tasks[s.values[v].producer].piece];
    std::map<int, std::pair<Part, Part>> span;  // per stage: the first phase that makes or reads it, and the last
    const auto touch = [&](std::uint32_t task) {
      const Part part = s.tasks[task].part;
      const auto [it, fresh] = span.try_emplace(stage_of[s.tasks[task].piece], part, part);
      it->second = {std::min(it->second.first, part), std::max(it->second.second, part)};
    };
    touch(s.values[v].producer);
    for (std::uint32_t c : s.values[v].consumers) touch(c);
    for (const auto& [stage, phases] : span) {
      const auto [from, until] = phases;
      if (from == until) continue;
      StageKeeps& k = all[std::size_t(stage)];
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

#include "stretto/plan/inner/alternatives.h"

#include <fmt/format.h>

#include <map>

#include "stretto/plan/inner/programs.h"

namespace stretto {

std::vector<std::pair<std::string, std::string>> values_of(const RunKeys& k) {
  return {{"pipe", fmt::format("{}", k.pipe)},
          {"data", fmt::format("{}", k.data)},
          {"tensor", fmt::format("{}", k.tensor)},
          {"context", fmt::format("{}", k.context)},
          {"expert", fmt::format("{}", k.expert)},
          {"zero", fmt::format("{}", k.zero)},
          {"schedule", std::string(k.schedule)},
          {"recompute", k.recompute_each.empty() ? std::string(name_of(k.recompute)) : "mixed"}};
}

std::vector<Alternative> alternatives(const std::vector<Planned>& scored, const RunKeys& chosen, Objective objective) {
  const auto cost = [&](const Planned& x) { return cost_of(objective, x.seconds, x.bytes); };
  std::map<std::pair<std::string, std::string>, const Planned*> best;
  for (const Planned& x : scored)
    for (const auto& kv : values_of(x.keys)) {
      const Planned*& b = best[kv];
      if (!b || cost(x) < cost(*b)) b = &x;
    }
  std::vector<Alternative> all;
  for (const auto& kv : values_of(chosen))
    for (const auto& [what, x] : best)
      if (what.first == kv.first && what.second != kv.second) all.push_back({what.first, what.second, *x});
  return all;
}

}  // namespace stretto

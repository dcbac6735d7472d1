// By how much more than their schedules say programs hold, at least: those with as much recompute and ZeRO, of the same
// schedule if there are any, else of those that make weight gradients as it does, apart or not.
//
//   HeldMore held;
//   held.add(keys, 1.04);
//   if (bytes * held.times(others) > capacity) ...    // not worth a compile
#pragma once
#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include "stretto/plan/space.h"

namespace stretto {

class HeldMore {
 public:
  void add(const RunKeys& k, double times) {
    for (const std::string_view schedule : {k.schedule, kind_of(k)}) {
      const auto [it, fresh] = least_.try_emplace({k.recompute, k.zero >= 2, schedule}, times);
      if (!fresh) it->second = std::min(it->second, times);
    }
  }
  double times(const RunKeys& k) const {
    for (const std::string_view schedule : {k.schedule, kind_of(k)})
      if (const auto it = least_.find({k.recompute, k.zero >= 2, schedule}); it != least_.end()) return it->second;
    return 1;
  }

 private:
  static std::string_view kind_of(const RunKeys& k) {
    const ScheduleRule* rule = find_rule(k.schedule);
    return rule && rule->fills > 0 ? "apart" : "together";
  }
  std::map<std::tuple<Recompute, bool, std::string_view>, double> least_;
};

}  // namespace stretto

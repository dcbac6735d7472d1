// What programs that were compiled say about those that were not: how much longer and larger than their schedules'
// play they are, at least, of those that are like them.
//
//   Experience experience;
//   experience.add(keys, {.longer = 0.95, .larger = 1.02});
//   double seconds = played.seconds * experience.longer(played.keys);
#pragma once
#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>

#include "stretto/plan/problem.h"
#include "stretto/schedule/builders.h"

namespace stretto {

// A program over its schedule's play.
struct Ratios {
  double longer = 1, larger = 1;
};

class Experience {
 public:
  void add(const RunKeys& k, const Ratios& r) {
    keep_least(longer_, collectives_of(k), r.longer);
    for (const std::string_view schedule : {k.schedule, kind_of(k)})
      keep_least(larger_, kept_of(k, schedule), r.larger);
  }
  // Is there a program whose collectives go on beside the same work?
  bool knows(const RunKeys& k) const { return longer_.contains(collectives_of(k)); }
  double longer(const RunKeys& k) const { return find(longer_, collectives_of(k)).value_or(1); }
  double larger(const RunKeys& k) const {
    if (const std::optional<double> same = find(larger_, kept_of(k, k.schedule))) return *same;
    return find(larger_, kept_of(k, kind_of(k))).value_or(1);
  }

 private:
  // What goes on beside what: the order of the schedule, and the axes over which tasks and storage talk.
  using Collectives = std::tuple<std::string_view, int, int, int, int>;
  static Collectives collectives_of(const RunKeys& k) {
    return {k.schedule, k.tensor, k.context, k.expert, std::max(1, k.zero)};
  }
  using Kept = std::tuple<Recompute, bool, std::string_view>;
  static Kept kept_of(const RunKeys& k, std::string_view schedule) { return {k.recompute, k.zero >= 2, schedule}; }
  // Schedules that make weight gradients apart keep other things than those that do not.
  static std::string_view kind_of(const RunKeys& k) {
    const BuilderEntry* rule = find_builder(k.schedule);
    return rule && rule->fills ? "apart" : "together";
  }
  template <class Key>
  static void keep_least(std::map<Key, double>& all, const Key& key, double ratio) {
    const auto [it, fresh] = all.try_emplace(key, ratio);
    if (!fresh) it->second = std::min(it->second, ratio);
  }
  template <class Key>
  static std::optional<double> find(const std::map<Key, double>& all, const Key& key) {
    const auto it = all.find(key);
    return it == all.end() ? std::nullopt : std::optional(it->second);
  }

  std::map<Collectives, double> longer_;
  std::map<Kept, double> larger_;
};

}  // namespace stretto

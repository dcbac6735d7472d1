// Why no configuration is legal.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "stretto/base/text.h"
#include "stretto/plan/explain.h"

namespace stretto {
namespace {

std::string list_of(const std::vector<int>& all) {
  std::vector<std::string> words;
  for (const int x : all) words.push_back(fmt::format("{}", x));
  return join(words, " or ");
}

// The nearest numbers of ranks below and above for which the given axes can be.
std::string nearest_multiples(int ranks, i64 unit) {
  const i64 below = ranks / unit * unit;
  return below > 0 && below != ranks ? fmt::format("{} or {}", below, below + unit) : fmt::format("{}", below + unit);
}

// A batch that every mesh divides by one that some mesh divides.
std::string batches_near(i64 batch, i64 by) {
  const i64 below = batch / by * by;
  return below > 0 ? fmt::format("{} or {}", below, below + by) : fmt::format("{}", by);
}

using Given = std::vector<std::pair<std::string_view, const std::vector<int>*>>;

Given axes_of(const PlanSpace& s) {
  return {{"pipe", &s.pipe}, {"data", &s.data}, {"tensor", &s.tensor}, {"context", &s.context}, {"expert", &s.expert}};
}

// All axes given and their product is not the number of ranks, or one of them does not divide it.
std::optional<Error> axes_fault(const PlanProblem& p, const PlanSpace& s) {
  i64 product = 1;
  bool all = true;
  std::vector<std::string> words, keys;
  for (const auto& [name, list] : axes_of(s)) {
    all = all && list->size() == 1;
    if (list->size() != 1) continue;
    product *= list->front();
    if (list->front() == 1) continue;
    words.push_back(fmt::format("{} = {}", name, list->front()));
    keys.push_back(fmt::format("parallel.{}", name));
  }
  if (all && product != p.ranks)
    return Error("plan", "the given axes make {} ranks and there are {}", product, p.ranks)
        .hint("leave one of them out, or use {} ranks", product)
        .about(keys);
  if (!words.empty() && p.ranks % product != 0)
    return Error("plan", "{} do{} not divide {} ranks", join(words, " x "), words.size() == 1 ? "es" : "", p.ranks)
        .hint("use {} ranks, or leave {} open", nearest_multiples(p.ranks, product), keys.back())
        .about(keys);
  for (const auto& [name, list] : axes_of(s))
    if (list->size() > 1 && std::none_of(list->begin(), list->end(), [&](int x) { return p.ranks % x == 0; }))
      return Error("plan", "no {} of {} divides {} ranks", name, list_of(*list), p.ranks)
          .hint("other values of plan.{}, or another number of ranks", name);
  return std::nullopt;
}

// Every mesh of so many ranks whose sizes are wanted.
void for_each_mesh(const PlanProblem& p, const PlanSpace& space, const std::function<void(const RunKeys&)>& visit) {
  const auto wanted = [](const std::vector<int>& list, int size) {
    return list.empty() || std::find(list.begin(), list.end(), size) != list.end();
  };
  for (const int pipe : divisors(p.ranks))
    for (const int tensor : divisors(p.ranks / pipe))
      for (const int context : divisors(p.ranks / pipe / tensor))
        for (const int expert : divisors(p.ranks / pipe / tensor / context)) {
          if (expert > 1 && p.model.experts == 0) continue;
          const int data = p.ranks / pipe / tensor / context / expert;
          if (wanted(space.pipe, pipe) && wanted(space.data, data) && wanted(space.tensor, tensor) &&
              wanted(space.context, context) && wanted(space.expert, expert))
            visit({.pipe = pipe, .data = data, .tensor = tensor, .context = context, .expert = expert});
        }
}

// The most ranks below these for which there is a mesh; 0: there are none near.
int fewer_ranks(PlanProblem p, const PlanSpace& space) {
  for (int near = 0; near < 64 && --p.ranks > 0; ++near) {
    bool any = false;
    for_each_mesh(p, space, [&](const RunKeys& k) { any = any || mesh_fault(p, k).empty(); });
    if (any) return p.ranks;
  }
  return 0;
}

// Why nothing that is wanted goes with a mesh: the reasons of all, counted.
void count_faults(const PlanProblem& p, const PlanSpace& space, RunKeys k, std::map<std::string, int>& reasons) {
  const auto given = [](const auto& list, auto otherwise) { return list.empty() ? otherwise : list; };
  std::vector<std::string> names = given(space.schedules, std::vector<std::string>{"1f1b"});
  k.zero = space.zero.empty() ? 0 : *std::min_element(space.zero.begin(), space.zero.end());
  for (const int m : given(space.microbatches, divisors(p.batch / (i64(k.data) * k.expert))))
    for (const std::string& name : names) {
      const ScheduleRule* rule = find_rule(name);
      for (const int v : given(space.chunks, std::vector{rule ? std::max(rule->chunks, 1) : 1})) {
        k.microbatches = m, k.schedule = interned(name), k.chunks = v;
        if (std::string fault = keys_fault(p, k); !fault.empty()) ++reasons[fault];
      }
    }
}

}  // namespace

Error nothing_legal(const PlanProblem& p, const PlanSpace& space) {
  if (std::optional<Error> e = axes_fault(p, space)) return std::move(*e);
  // Every mesh has a reason, or all that goes with it: the one that most have.
  std::map<std::string, int> reasons, of_keys;
  i64 smallest = 0;  // number by which some mesh would divide the batch
  bool only_batch = true;
  for_each_mesh(p, space, [&](const RunKeys& k) {
    const std::string fault = mesh_fault(p, k);
    if (fault.empty())
      count_faults(p, space, k, of_keys);
    else
      ++reasons[fault];
    const i64 shares = i64(k.data) * k.expert;
    if (fault.find("batch") == fault.npos)
      only_batch = false;
    else
      smallest = smallest == 0 ? shares : std::min(smallest, shares);
  });
  const auto most = [](const std::map<std::string, int>& all) {
    const auto fewer = [](const auto& a, const auto& b) { return a.second < b.second; };
    return all.empty() ? "the given axes exclude each other" : std::max_element(all.begin(), all.end(), fewer)->first;
  };
  if (!of_keys.empty())
    return Error("plan", "nothing that is given goes together on {} ranks: {}", p.ranks, most(of_keys))
        .hint("leave one of these keys open");
  std::string hint = "another number of ranks, or other values of what is given";
  if (smallest > 0 && only_batch)
    hint = fmt::format("use train.batch = {}", batches_near(p.batch, smallest));
  else if (const int fewer = fewer_ranks(p, space); fewer > 0)
    hint = fmt::format("{} ranks are possible, and {} stay{} idle", fewer, p.ranks - fewer,
                       p.ranks - fewer == 1 ? "s" : "");
  return Error("plan", "no mesh of {} ranks is possible: {}", p.ranks, most(reasons)).hint("{}", hint);
}

}  // namespace stretto

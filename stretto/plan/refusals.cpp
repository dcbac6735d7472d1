// Why no configuration is legal.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "stretto/base/text.h"
#include "stretto/plan/explain.h"
#include "stretto/schedule/builders.h"

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

// The most ranks below these for which there is a mesh: the largest product of sizes that model and batch allow.
std::optional<int> fewer_ranks(const PlanProblem& p, const PlanSpace& space) {
  if (p.graph) return std::nullopt;  // only compiling says what divides it
  std::vector<int> pipes(p.pieces());
  std::iota(pipes.begin(), pipes.end(), 1);
  int best = 0;
  for (const int pipe : pipes)
    for (const int data : divisors(p.batch))
      for (const int tensor : divisors(p.model.heads))
        for (const int context : divisors(p.model.context))
          for (const int expert : divisors(std::max<i64>(1, p.model.experts))) {
            const double ranks = 1.0 * pipe * data * tensor * context * expert;  // no int holds some of them
            if (ranks <= best || ranks >= p.ranks) continue;
            const RunKeys k{.pipe = pipe,
                            .data = data,
                            .tensor = tensor,
                            .context = context,
                            .expert = expert,
                            .sequence = space.sequence.value_or(true) && tensor > 1};
            const bool wanted = allows(space.pipe, pipe) && allows(space.data, data) && allows(space.tensor, tensor) &&
                                allows(space.context, context) && allows(space.expert, expert);
            if (wanted && mesh_fault(p, space, k).empty()) best = k.ranks();
          }
  return best > 0 ? std::optional(best) : std::nullopt;
}

// Why nothing that is wanted goes with a mesh: the reasons of all, counted.
void count_faults(const PlanProblem& p, const PlanSpace& space, RunKeys k, std::map<std::string, int>& reasons) {
  const auto given = [](const auto& list, auto otherwise) { return list.empty() ? otherwise : list; };
  std::vector<std::string> names = given(space.schedules, std::vector<std::string>{"1f1b"});
  k.zero = space.zero.empty() ? 0 : *std::min_element(space.zero.begin(), space.zero.end());
  for (const int m : given(space.microbatches, divisors(p.batch / (i64(k.data) * k.expert))))
    for (const std::string& name : names) {
      const BuilderEntry* rule = find_builder(name);
      for (const int v : given(space.chunks, std::vector{rule ? std::max(rule->chunks, 1) : 1})) {
        k.microbatches = m, k.schedule = interned(name), k.chunks = v;
        if (std::string fault = keys_fault(p, k); !fault.empty()) ++reasons[fault];
      }
    }
}

// The reasons that most have, the commonest first and one per axis: "pipe = 16 is more than ...".
std::string commonest(const std::map<std::string, int>& reasons) {
  constexpr std::size_t most = 3;
  std::vector<std::pair<std::string, int>> all(reasons.begin(), reasons.end());
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> words;
  std::set<std::string> axes;
  for (const auto& [reason, count] : all)
    if (words.size() < most && axes.insert(reason.substr(0, reason.find(' '))).second) words.push_back(reason);
  return words.empty() ? "the given axes exclude each other" : join(words, "; ");
}

// Why meshes cannot be, and what would change that.
struct MeshFaults {
  std::map<std::string, int> meshes,
      keys;  // how many have each reason; of meshes that can be: why nothing goes with it
  bool only_batch = true;
  std::optional<i64> divides;        // the smallest number by which some mesh would divide the batch
  std::optional<int> short_context;  // an axis that would be possible if it were asked for

  std::string hint(const PlanProblem& p, const PlanSpace& space) const {
    if (divides && only_batch) return fmt::format("use train.batch = {}", batches_near(p.batch, *divides));
    if (short_context) return fmt::format("give parallel.context = {}", *short_context);
    const std::optional<int> fewer = fewer_ranks(p, space);
    if (!fewer) return "another number of ranks, or other values of what is given";
    const int idle = p.ranks - *fewer;
    return fmt::format("{} possible, and {} stay{} idle",
                       *fewer == 1 ? "1 rank is" : fmt::format("{} ranks are", *fewer), idle, idle == 1 ? "s" : "");
  }
};

MeshFaults mesh_faults(const PlanProblem& p, const PlanSpace& space) {
  MeshFaults all;
  for_each_mesh(p, space, [&](const RunKeys& k) {
    const std::string fault = mesh_fault(p, space, k);
    if (fault.empty()) return count_faults(p, space, k, all.keys);
    ++all.meshes[fault];
    const i64 shares = i64(k.data) * k.expert;
    const bool batch = p.batch % shares != 0 && fault.find("batch") != fault.npos;
    if (batch) all.divides = std::min(all.divides.value_or(shares), shares);
    if (mesh_fault(p, k).empty()) all.short_context = k.context;
    all.only_batch = all.only_batch && batch;
  });
  return all;
}

}  // namespace

Error nothing_legal(const PlanProblem& p, const PlanSpace& space) {
  if (std::optional<Error> e = axes_fault(p, space)) return std::move(*e);
  const MeshFaults faults = mesh_faults(p, space);
  if (!faults.keys.empty())
    return Error("plan", "nothing that is given goes together on {} ranks: {}", p.ranks, commonest(faults.keys))
        .hint("leave one of these keys open");
  return Error("plan", "no mesh of {} ranks is possible: {}", p.ranks, commonest(faults.meshes))
      .hint("{}", faults.hint(p, space));
}

}  // namespace stretto

#include "stretto/plan/inner/graph_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "stretto/plan/inner/alternatives.h"
#include "stretto/plan/inner/prediction.h"

namespace stretto {
namespace {

constexpr std::size_t most_meshes = 128;  // that are compiled
constexpr std::size_t climbed = 3;        // of the best of them
constexpr int rounds = 3;

using MeshOf = std::tuple<int, int, int, int, int, bool>;
MeshOf mesh_of_keys(const RunKeys& k) { return {k.pipe, k.data, k.tensor, k.context, k.expert, k.sequence}; }

// What may change while all else stays: how it is read, as one comparable value.
using Changed = std::pair<std::string, int>;
using Coordinate = Changed (*)(const RunKeys&);
constexpr Coordinate coordinates[] = {
    [](const RunKeys& k) { return Changed("", k.microbatches); },
    [](const RunKeys& k) { return Changed(std::string(k.schedule), k.chunks); },
    [](const RunKeys& k) { return Changed("", int(k.recompute)); },
    [](const RunKeys& k) { return Changed("", k.zero); },
};
bool differ_only_in(std::size_t coordinate, const RunKeys& a, const RunKeys& b) {
  for (std::size_t i = 0; i < std::size(coordinates); ++i)
    if (i != coordinate && coordinates[i](a) != coordinates[i](b)) return false;
  return true;
}

// Of a mesh what is compiled first: plain, with enough microbatches to fill the pipeline.
double strangeness(const RunKeys& k) {
  const double wanted = k.pipe > 1 ? 4.0 * k.pipe : 1;
  return 100.0 * k.zero + 100.0 * int(k.recompute != Recompute::none) + 10.0 * int(k.schedule != "1f1b") + k.chunks +
         std::abs(std::log2(k.microbatches / wanted));
}

class GraphSearch {
 public:
  GraphSearch(const PlanProblem& p, const PlanSpace& space, const PlanOptions& o) : p_(p), o_(o) {
    plan_.capacity = p.cluster.memory * o.memory;
    list(space, 1);
    if (space.sequence) return;
    PlanSpace whole = space;  // positions that a tensor axis does not divide
    whole.sequence = false;
    list(whole, 2);
  }

  Plan run() {
    plan_.counts.meshes = std::ssize(meshes_);
    if (meshes_.empty()) return std::move(plan_);
    plan_.flops = model_flops(p_);
    const std::vector<const RunKeys*> best = compile_meshes();
    for (std::size_t i = 0; i < best.size() && i < (o_.quick ? 1 : climbed); ++i) climb(*best[i]);
    finish();
    return std::move(plan_);
  }

 private:
  void list(const PlanSpace& space, int least_tensor) {
    for (RunKeys& k : enumerate(p_, space).keys) {
      if (k.tensor < least_tensor) continue;
      meshes_[mesh_of_keys(k)].push_back(std::move(k));
      ++plan_.counts.tried;
    }
  }

  // Smaller is better: what does not fit comes after all that does.
  std::pair<double, double> cost(const Planned& x) const {
    const double wanted = o_.objective == Objective::time ? x.seconds : x.bytes;
    const double over = x.bytes > plan_.capacity ? x.bytes / plan_.capacity : 0;
    return x.refused.empty() ? std::pair(over, wanted) : std::pair(std::numeric_limits<double>::infinity(), 0.0);
  }
  bool better(const Planned& a, const Planned& b) const {
    return std::pair(cost(a), a.keys) < std::pair(cost(b), b.keys);
  }
  const Planned& known(const RunKeys& k) const { return known_.at(k); }

  void compile(const std::vector<const RunKeys*>& keys, std::string_view what) {
    std::vector<std::pair<const RunKeys, Planned>*> fresh;
    for (const RunKeys* k : keys)
      if (const auto [it, added] = known_.try_emplace(*k); added) fresh.push_back(&*it);
    double done = 0;
    constexpr std::size_t some = 8;  // so that one sees how it goes on
    for (std::size_t from = 0; from < fresh.size(); from += some) {
      if (o_.progress) o_.progress(what, done, double(fresh.size()));
      const std::size_t n = std::min(some, fresh.size() - from);
      o_.each(n, [&](std::size_t i) {
        auto& [k, x] = *fresh[from + i];
        x = compiled_plan(p_, k);
        x.program.reset();  // made again of the best
      });
      done += double(n);
    }
    for (const auto* x : fresh) ++(x->second.refused.empty() ? plan_.counts.compiled : plan_.counts.refused);
  }

  // The most promising first.
  std::vector<const RunKeys*> compile_meshes() {
    std::vector<const RunKeys*> first;
    for (const auto& [mesh, keys] : meshes_) first.push_back(&*std::ranges::min_element(keys, {}, strangeness));
    std::ranges::stable_sort(first, {}, [](const RunKeys* k) { return k->sequence == (k->tensor > 1) ? 0 : 1; });
    if (first.size() > most_meshes) first.resize(most_meshes);
    compile(first, "meshes");
    std::erase_if(first, [&](const RunKeys* k) { return !known(*k).refused.empty(); });
    std::ranges::stable_sort(first, [&](const RunKeys* a, const RunKeys* b) { return better(known(*a), known(*b)); });
    return first;
  }

  void climb(RunKeys at) {
    const std::vector<RunKeys>& mesh = meshes_.at(mesh_of_keys(at));
    for (int round = 0; round < rounds; ++round) {
      const RunKeys before = at;
      for (std::size_t c = 0; c < std::size(coordinates); ++c) {
        std::vector<const RunKeys*> next;
        for (const RunKeys& k : mesh)
          if (differ_only_in(c, k, at)) next.push_back(&k);
        compile(next, "programs");
        for (const RunKeys* k : next)
          if (better(known(*k), known(at))) at = *k;
      }
      if (at == before) return;
    }
  }

  void finish() {
    for (auto& [k, x] : known_) {
      if (!x.refused.empty()) continue;
      if (x.bytes <= plan_.capacity) {
        ++plan_.counts.fit;
        plan_.scored.push_back(x);
      } else {
        ++plan_.counts.memory;
        if (!plan_.nearest || x.bytes < plan_.nearest->bytes) plan_.nearest = x;
      }
    }
    std::ranges::sort(plan_.scored, [&](const Planned& a, const Planned& b) { return better(a, b); });
    if (plan_.counts.compiled == 0) throw nothing_compiles();
    if (plan_.scored.empty()) return;
    plan_.nearest.reset();
    for (const Planned& x : plan_.scored) {
      if (std::ssize(plan_.best) < o_.top) plan_.best.push_back(x);
      if (x.seconds <= (1 + o_.margin) * plan_.scored.front().seconds) plan_.as_good.push_back(x);
    }
    plan_.others = alternatives(plan_.scored, plan_.best.front().keys, o_.objective);
  }

  Error nothing_compiles() const {
    std::map<std::string, int> reasons;
    for (const auto& [k, x] : known_) ++reasons[x.refused];
    const auto most = std::ranges::max_element(reasons, {}, [](const auto& r) { return r.second; });
    return Error("plan", "no mesh of {} ranks can be compiled, {} of {} since {}", p_.ranks, most->second,
                 known_.size(), most->first)
        .hint("another number of ranks, or other values of what is given; stretto check says what is wrong with one");
  }

  const PlanProblem& p_;
  const PlanOptions& o_;
  std::map<MeshOf, std::vector<RunKeys>> meshes_;
  std::map<RunKeys, Planned> known_;
  Plan plan_;
};

}  // namespace

Plan plan_of_graph(const PlanProblem& p, const PlanSpace& space, const PlanOptions& o) {
  return GraphSearch(p, space, o).run();
}

}  // namespace stretto

#include "stretto/plan/space.h"

#include <fmt/format.h>

#include <algorithm>

#include "stretto/base/text.h"
#include "stretto/compile/scheduled.h"
#include "stretto/schedule/builders.h"

namespace stretto {
namespace {

constexpr i64 least_positions = 512;  // of a sequence on a rank; fewer are kernels that are too small

std::vector<int> allowed(const std::vector<int>& list, std::vector<int> all) {
  std::erase_if(all, [&](int x) { return !allows(list, x); });
  return all;
}

// Of `any` schedules: while a stage has about a layer, or what was asked for.
std::vector<int> chunk_choices(const PlanProblem& p, const PlanSpace& space, const BuilderEntry* rule, int pipe) {
  const int fixed = rule ? rule->chunks : 1;
  if (fixed != any_chunks) return allowed(space.chunks, {fixed});
  std::vector<int> all;
  const i64 most = p.graph ? p.pieces() : p.model.layers + 2;
  for (const int v : space.chunks.empty() ? std::vector{2, 3, 4, 5, 6, 8, 10, 12, 16} : space.chunks)
    if (v >= 2 && (i64(pipe) * v <= most || !space.chunks.empty())) all.push_back(v);
  return all;
}

std::vector<std::string_view> schedule_choices(const PlanSpace& space) {
  std::vector<std::string_view> names;
  for (const std::string& s : space.schedules) names.push_back(interned(s));
  if (names.empty())
    for (const BuilderEntry& r : schedule_builders())
      if (r.searched) names.push_back(r.name);
  return names;
}

class Enumeration {
 public:
  Enumeration(const PlanProblem& p, const PlanSpace& space) : p_(p), space_(space) {}

  Enumerated run() {
    for_each_mesh(p_, space_, [&](const RunKeys& k) {
      if (mesh_fault(p_, space_, k).empty()) mesh(k);
    });
    return std::move(all_);
  }

 private:
  void mesh(RunKeys k) {
    ++all_.meshes;
    const bool one = p_.graph && p_.graph->one_microbatch;
    for (const int m :
         allowed(space_.microbatches, one ? std::vector{1} : divisors(p_.batch / (i64(k.data) * k.expert)))) {
      k.microbatches = m;
      schedules(k);
    }
  }
  void schedules(RunKeys k) {
    if (k.pipe == 1) {  // nothing to schedule
      const auto names = schedule_choices(space_);
      k.schedule = space_.schedules.empty() ? "1f1b" : names.front();
      k.chunks = 1;
      if (const BuilderEntry* r = find_builder(k.schedule); r && r->chunks != 1) k.schedule = "1f1b";
      if (allows(space_.chunks, 1) && keys_fault(p_, k).empty()) rest(k);
      return;
    }
    for (const std::string_view name : schedule_choices(space_)) {
      k.schedule = name;
      for (const int v : chunk_choices(p_, space_, find_builder(name), k.pipe)) {
        k.chunks = v;
        if (keys_fault(p_, k).empty()) rest(k);
      }
    }
  }
  void rest(RunKeys k) {
    for (const Recompute r : recompute_choices(space_))
      for (int zero = 0; zero <= (k.data > 1 ? 3 : 0); ++zero) {
        k.recompute = r;
        k.zero = zero;
        if (allows(space_.zero, zero) && (!space_.may || space_.may(k))) all_.keys.push_back(k);
      }
  }

  const PlanProblem& p_;
  const PlanSpace& space_;
  Enumerated all_;
};

}  // namespace

bool allows(const std::vector<int>& list, int x) {
  return list.empty() || std::find(list.begin(), list.end(), x) != list.end();
}

std::vector<Recompute> recompute_choices(const PlanSpace& space) {
  return space.recompute.empty() ? std::vector(std::begin(by_what_is_kept), std::end(by_what_is_kept))
                                 : space.recompute;
}

std::vector<int> divisors(i64 n) {
  std::vector<int> small, large;
  for (i64 d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    small.push_back(static_cast<int>(d));
    if (d * d != n) large.push_back(static_cast<int>(n / d));
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

namespace {
// What only families say before anything is compiled.
std::string sizes_fault(const ModelConfig& m, const RunKeys& k) {
  const i64 kv = m.kv_heads ? m.kv_heads : m.heads;
  if (m.heads % k.tensor != 0) return fmt::format("tensor = {} does not divide {} heads", k.tensor, m.heads);
  if (kv % k.tensor != 0 && m.group() % k.tensor != 0)
    return fmt::format("tensor = {} divides neither {} key/value heads nor their groups of {}", k.tensor, kv,
                       m.group());
  if (m.ff % k.tensor != 0)
    return fmt::format("tensor = {} does not divide a feed-forward width of {}", k.tensor, m.ff);
  if (m.context % (i64(k.context) * (k.sequence ? k.tensor : 1)) != 0)
    return fmt::format("context = {}{} does not divide a context of {}", k.context,
                       k.sequence ? fmt::format(" x tensor = {}", k.tensor) : "", m.context);
  if (k.expert > 1 && (m.experts == 0 || m.experts % k.expert != 0))
    return m.experts == 0 ? fmt::format("expert = {} and the model has no experts", k.expert)
                          : fmt::format("expert = {} does not divide {} experts", k.expert, m.experts);
  return "";
}
}  // namespace

std::string mesh_fault(const PlanProblem& p, const RunKeys& k) {
  if (k.pipe > p.pieces()) return fmt::format("pipe = {} is more than the model's {} pieces", k.pipe, p.pieces());
  if (!p.graph)
    if (std::string fault = sizes_fault(p.model, k); !fault.empty()) return fault;
  if (p.batch % (i64(k.data) * k.expert) != 0)
    return fmt::format("data{} = {} does not divide a batch of {}", k.expert > 1 ? " x expert" : "", k.data * k.expert,
                       p.batch);
  return "";
}

std::string mesh_fault(const PlanProblem& p, const PlanSpace& space, const RunKeys& k) {
  if (std::string fault = mesh_fault(p, k); !fault.empty()) return fault;
  const i64 positions = p.positions() / k.context;
  if (k.context == 1 || !space.context.empty() || positions >= least_positions) return "";
  return fmt::format(
      "context = {} leaves {} positions to a rank, and fewer than {} are searched only where it is given", k.context,
      positions, least_positions);
}

void for_each_mesh(const PlanProblem& p, const PlanSpace& space, const std::function<void(const RunKeys&)>& visit) {
  const auto experts = [&](int ranks) {
    const bool there = p.graph ? p.graph->experts : p.model.experts > 0;
    return there ? divisors(ranks) : std::vector{1};
  };
  for (const int pipe : allowed(space.pipe, divisors(p.ranks)))
    for (const int tensor : allowed(space.tensor, divisors(p.ranks / pipe)))
      for (const int context : allowed(space.context, divisors(p.ranks / pipe / tensor)))
        for (const int expert : allowed(space.expert, experts(p.ranks / pipe / tensor / context))) {
          const int data = p.ranks / pipe / tensor / context / expert;
          if (!allows(space.data, data)) continue;
          visit({.pipe = pipe,
                 .data = data,
                 .tensor = tensor,
                 .context = context,
                 .expert = expert,
                 .sequence = space.sequence.value_or(true) && tensor > 1});
        }
}

std::string keys_fault(const PlanProblem& p, const RunKeys& k) {
  const BuilderEntry* rule = find_builder(k.schedule);
  if (k.stage_count() > p.pieces())
    return fmt::format("{} stages are more than the model's {} pieces", k.stage_count(), p.pieces());
  if (!p.parallel.stages.empty() && std::ssize(p.parallel.stages) != k.stage_count())
    return fmt::format("{} stages are given, and pipe x chunks is {}", p.parallel.stages.size(), k.stage_count());
  if (!k.recompute_each.empty() && std::ssize(k.recompute_each) != k.stage_count())
    return fmt::format("recompute of {} stages is given, and pipe x chunks is {}", k.recompute_each.size(),
                       k.stage_count());
  if (rule && k.pipe > 1 && rule->chunks != any_chunks && k.chunks != rule->chunks)
    return fmt::format("{} has {} chunk{}, not {}", k.schedule, rule->chunks, rule->chunks == 1 ? "" : "s", k.chunks);
  if (rule && k.pipe > 1 && !rule->limits.hold(k.pipe, k.microbatches))
    return fmt::format("{} does not exist for {} actors and {} microbatches", k.schedule, k.pipe, k.microbatches);
  if (k.zero > 0 && k.data == 1) return fmt::format("zero = {} cuts over the data axis, and data is 1", k.zero);
  const i64 tasks = i64(p.pieces()) * 3 * k.microbatches;
  if (tasks > most_tasks) return fmt::format("a step of {} tasks is more than can be compiled", tasks);
  if (p.batch % (i64(k.data) * k.expert * k.microbatches) != 0)
    return fmt::format("{} sequences on {} ranks cannot be cut into {} microbatches", p.batch, k.data * k.expert,
                       k.microbatches);
  return "";
}

Enumerated enumerate(const PlanProblem& p, const PlanSpace& space) { return Enumeration(p, space).run(); }

}  // namespace stretto

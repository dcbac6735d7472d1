#include "plan_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <list>
#include <thread>
#include <utility>

#include "progress.h"
#include "stretto/base/text.h"
#include "stretto/base/threads.h"
#include "stretto/kernels/peak.h"
#include "stretto/plan/explain.h"
#include "stretto/runtime/devices.h"
#include "stretto/run/prepare.h"
#include "usage.h"

namespace stretto::app {
namespace {

using PlanClock = std::chrono::steady_clock;

double since(PlanClock::time_point start) { return std::chrono::duration<double>(PlanClock::now() - start).count(); }

PlanOptions plan_options(const RunConfig& run, const PlanArguments& a) {
  PlanOptions o{.top = a.top, .margin = run.plan.margin, .memory = run.plan.memory, .quick = a.quick};
  if (run.plan.objective == "memory") o.objective = Objective::memory;
  o.each = on_all_cores();
  return o;
}

// What of the run is fixed, and how it is left open.
struct FixedKey {
  const char* name;
  bool (*open)(PlanSpace&);  // false: it was open
};
template <auto Member>
bool opened(PlanSpace& s) {
  return !std::exchange(s.*Member, {}).empty();
}
constexpr FixedKey fixed_keys[] = {
    {"parallel.recompute", opened<&PlanSpace::recompute>},
    {"parallel.zero", opened<&PlanSpace::zero>},
    {"train.microbatches", opened<&PlanSpace::microbatches>},
    {"parallel.schedule", opened<&PlanSpace::schedules>},
    {"parallel.chunks", opened<&PlanSpace::chunks>},
    {"parallel.tensor", opened<&PlanSpace::tensor>},
    {"parallel.pipe", opened<&PlanSpace::pipe>},
    {"parallel.data", opened<&PlanSpace::data>},
    {"parallel.context", opened<&PlanSpace::context>},
    {"parallel.expert", opened<&PlanSpace::expert>},
};

// What would make something fit, each tried: by schedules first, and what seems to by programs.
class Remedies {
 public:
  Remedies(const PlanProblem& p, const RunConfig& run, const PlanArguments& a)
      : p_(p), space_(space_of(run)), options_(plan_options(run, a)) {
    options_.top = options_.compiled = 1;
  }

  std::vector<std::string> found(const std::optional<Planned>& nearest) {
    std::vector<std::string> all;
    if (nearest && nearest->exact == Exactness::program && nearest->bytes <= p_.cluster.memory)
      all.push_back(fmt::format("plan.memory = {:.2f}", std::ceil(100 * nearest->bytes / p_.cluster.memory) / 100));
    for (const FixedKey& key : fixed_keys) {
      PlanSpace open = space_;
      if (!key.open(open)) continue;
      if (const std::optional<Planned> x = fits(p_, open)) {
        all.push_back(fmt::format("leave {} open: {} fits ({})", key.name, x->keys.str(), decimal_bytes(x->bytes)));
        break;
      }
    }
    for (int times = 2; times <= 8 && all.empty(); times *= 2) {
      PlanProblem larger = p_;
      larger.ranks *= times;
      if (linked(larger) && fits(larger, space_)) all.push_back(fmt::format("{} ranks fit", larger.ranks));
    }
    for (i64 context = p_.model.context / 2; context >= p_.model.context / 8 && context >= 128; context /= 2) {
      PlanProblem shorter = p_;
      shorter.model.context = context;
      if (!fits(shorter, space_)) continue;
      all.push_back(fmt::format("a context of {} fits", context));
      break;
    }
    return all;
  }

 private:
  static bool linked(const PlanProblem& problem) {
    const ClusterFile& c = problem.cluster;
    return c.between || problem.ranks <= c.cluster.ranks_per_node;
  }
  std::optional<Planned> fits(const PlanProblem& problem, const PlanSpace& space) {
    std::optional<Planned> best;
    for (const bool quick : {true, false}) {
      options_.quick = quick;
      try {
        const Plan plan = make_plan(problem, space, options_);
        if (plan.best.empty()) return std::nullopt;
        best = plan.best.front();
      } catch (const Error&) {  // not even legal
        return std::nullopt;
      }
    }
    return best;
  }

  const PlanProblem& p_;
  const PlanSpace space_;
  PlanOptions options_;
};

}  // namespace

Each on_all_cores() {
  return [](std::size_t n, const std::function<void(std::size_t)>& function) {
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
      for (std::size_t i; (i = next++) < n;) function(i);
    };
    const std::size_t helpers = std::min<std::size_t>(n, std::max(1u, std::thread::hardware_concurrency()));
    std::list<std::future<void>> others;
    for (std::size_t i = 1; i < helpers; ++i) others.push_back(in_background(work));
    work();
    for (std::future<void>& f : others) f.get();
  };
}

ClusterFile cluster_of(const PlanArguments& a, const RunConfig& run) {
  if (!a.cluster.empty()) return read_cluster(a.cluster, {}, run.train.dtype.products);
  if (computes(run.parallel.device))
    throw Error("plan", "no cluster is given")
        .hint(
            "--cluster CLUSTER.toml: ranks_per_node, memory, [machine], [inside], [between]; stretto bench comm "
            "writes one of this machine")
        .as(Error::Kind::usage);
  ClusterFile file{.name = "parallel.machine and parallel.link"};
  file.cluster.machine = run.parallel.machine;
  if (run.parallel.link) file.cluster.inside = file.cluster.between = *run.parallel.link;
  return file;
}

std::vector<int> ranks_of(const PlanArguments& a, const RunConfig& run, const ClusterFile& cluster) {
  if (a.ranks > 0) return {a.ranks};
  std::vector<int> each;
  for (const int n : run.plan.ranks)
    if (std::find(each.begin(), each.end(), n) == each.end()) each.push_back(n);
  if (!each.empty()) return each;
  if (const int fixed = fixed_ranks(run); fixed > 0) return {fixed};
  if (cluster.ranks) return {*cluster.ranks};
  throw Error("plan", "nothing says how many ranks there are")
      .hint("--ranks 64, plan.ranks = 64 in the run{}", cluster.device ? ", or ranks = 64 in the cluster file" : "")
      .as(Error::Kind::usage);
}

Planning make_planning(const PlanProblem& p, const RunConfig& run, const PlanArguments& a) {
  const PlanClock::time_point start = PlanClock::now();
  check_ranks(p.cluster, p.ranks);
  const PlanSpace space = space_of(run);
  PlanOptions options = plan_options(run, a);
  Planning r;
  {
    Progress progress("planning");
    options.progress = [&](std::string_view what, double done, double of) { progress.show(done, of, what); };
    r.plan = make_plan(p, space, options);
  }
  if (r.plan.counts.tried == 0) throw nothing_legal(p, space);
  if (r.plan.best.empty()) throw nothing_fits(p, r.plan, Remedies(p, run, a).found(r.plan.nearest));
  r.seconds = since(start);
  return r;
}

std::vector<std::string> lines_about(const PlanProblem& p, const RunConfig& run) {
  const Cluster& c = p.cluster.cluster;
  const int nodes = (p.ranks + c.ranks_per_node - 1) / c.ranks_per_node;
  return {fmt::format("model    {}: {} parameters; {} sequence{} a step, {}", p.model.str(),
                      human_count(parameter_count(p.model)), p.batch, p.batch == 1 ? "" : "s",
                      name_of(run.train.dtype.kept)),
          fmt::format(
              "cluster  {}: {} node{} of {}, {}flop/s each{}", p.cluster.name, nodes, nodes == 1 ? "" : "s",
              std::min(p.ranks, c.ranks_per_node), human_count(c.machine.rate(half(p))),
              std::isfinite(p.cluster.memory) ? fmt::format(", {} of memory", decimal_bytes(p.cluster.memory)) : "")};
}

RunConfig planned_here(const RunConfig& run, std::string& said) {
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const int ranks = run.plan.ranks.empty() ? cores : run.plan.ranks.front();
  ClusterFile here{.name = "this machine"};
  here.cluster.ranks_per_node = ranks;
  here.cluster.inside = Parallel().link;
  here.cluster.machine.flops = peak_flops(run.train.dtype) * std::min(1.0, 1.0 * cores / ranks);
  here.memory = machine_bytes() / ranks;
  if (!computes(run.parallel.device)) here = cluster_of({}, run);
  const PlanProblem problem = problem_of(run, here, ranks);
  const Planning planned = make_planning(problem, run, {.top = 1});
  const Planned& best = planned.plan.best.front();
  said = fmt::format("planned  {}: {} a step predicted, the best of {} configurations for {} rank{} of {}",
                     best.keys.str(), human_seconds(best.seconds), planned.plan.counts.tried, ranks,
                     ranks == 1 ? "" : "s", here.name);
  return with_keys(run, best.keys);
}

}  // namespace stretto::app

#include "stretto/run/planned.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <list>
#include <thread>
#include <utility>

#include "stretto/base/text.h"
#include "stretto/base/threads.h"
#include "stretto/kernels/peak.h"
#include "stretto/plan/explain.h"
#include "stretto/run/measured_runs.h"
#include "stretto/run/prepare.h"
#include "stretto/runtime/devices.h"

namespace stretto {
namespace {

using PlanClock = std::chrono::steady_clock;

double since(PlanClock::time_point start) { return std::chrono::duration<double>(PlanClock::now() - start).count(); }

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
  Remedies(const PlanProblem& p, const RunConfig& run, const PlanRequest& a)
      : p_(p), space_(space_of(run)), options_(plan_options(run, a)) {
    options_.top = options_.compiled = 1;
    space_.may = a.may;
  }

  std::vector<std::string> found(const std::optional<Planned>& nearest) {
    std::vector<std::string> all;
    if (nearest && nearest->exact == Exactness::program && nearest->bytes <= p_.cluster.memory)
      all.push_back(fmt::format("plan.memory = {:.2f}", std::ceil(100 * nearest->bytes / p_.cluster.memory) / 100));
    if (p_.graph) return all;  // every further one is a search by programs
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
  PlanSpace space_;
  PlanOptions options_;
};

Planning planning_for(PlanProblem p, const RunConfig& run, const PlanRequest& a) {
  const PlanClock::time_point start = PlanClock::now();
  check_ranks(p.cluster, p.ranks);
  PlanSpace space = space_of(run);
  space.may = a.may;
  PlanOptions options = plan_options(run, a);
  options.progress = a.progress;
  Plan plan = make_plan(p, space, options);
  if (plan.counts.tried == 0) {
    space.may = {};
    if (const std::size_t legal = enumerate(p, space).keys.size(); a.may && legal > 0)
      throw Error("plan", "of {} configurations on {} ranks none has a counterpart in the software they are for", legal,
                  p.ranks)
          .hint("leave more of [parallel] open, or plan for another number of ranks");
    throw nothing_legal(p, space);
  }
  if (plan.best.empty()) throw nothing_fits(p, plan, Remedies(p, run, a).found(plan.nearest));
  return {.problem = std::move(p), .plan = std::move(plan), .seconds = since(start)};
}

}  // namespace

PlanOptions plan_options(const RunConfig& run, const PlanRequest& a) {
  PlanOptions o{.top = a.top, .margin = run.plan.margin, .memory = run.plan.memory, .quick = a.quick};
  if (run.plan.objective == "memory") o.objective = Objective::memory;
  o.each = on_all_cores();
  return o;
}

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

ClusterFile cluster_of(const PlanRequest& a, const RunConfig& run) {
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

static std::vector<int> ranks_of(const PlanRequest& a, const RunConfig& run, const ClusterFile& cluster) {
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

double Planning::rank_hours() const { return best().seconds * problem.ranks / 3600; }

namespace {

// So many ranks on the cores of this machine, and as many threads in each as there are cores for, or as the run says.
ClusterFile this_machine(const RunConfig& run, int ranks) {
  const int cores = static_cast<int>(usable_cores().size());
  const int threads = run.parallel.threads > 0 ? run.parallel.threads : std::max(1, cores / ranks);
  ClusterFile here{.name = "this machine"};
  here.cluster.ranks_per_node = ranks;
  here.cluster.inside = Parallel().link;
  here.cluster.machine.threads = threads;
  here.cluster.machine.flops = peak_flops(run.train.dtype) * std::min(1.0, 1.0 * cores / (ranks * threads));
  here.memory = machine_bytes() / ranks;
  return here;
}

// All numbers of ranks that leave no core without work, unless the run says how many there are.
std::vector<int> ranks_here(const PlanRequest& a, const RunConfig& run) {
  if (a.ranks > 0 || !run.plan.ranks.empty() || fixed_ranks(run) > 0) return ranks_of(a, run, {});
  const int cores = static_cast<int>(usable_cores().size()), threads = run.parallel.threads;
  std::vector<int> each;
  for (int ranks = 1; ranks <= cores; ++ranks)
    if (threads > 0 ? ranks == std::max(1, cores / threads) : cores % ranks == 0) each.push_back(ranks);
  return each;
}

}  // namespace

RunPlanning plan_of_run(const RunConfig& read, const PlanRequest& a) {
  const bool here = a.cluster.empty() && computes(read.parallel.device);
  const ClusterFile cluster = here ? ClusterFile{} : cluster_of(a, read);
  RunPlanning all{.run = as_stack_has_it(read, cluster.cluster.stack), .each = {}};
  const std::vector<int> ranks = here ? ranks_here(a, all.run) : ranks_of(a, all.run, cluster);
  for (const int n : ranks) {
    try {
      all.each.push_back(planning_for(problem_of(all.run, here ? this_machine(all.run, n) : cluster, n), all.run, a));
    } catch (const Error& e) {
      if (n == ranks.back() && all.each.empty()) throw;
      all.without.push_back(fmt::format("{} ranks: {}", n, e.what()));
    }
  }
  return all;
}

// The one with the shortest step, the least memory or the least hours of ranks.
const Planning& RunPlanning::best() const {
  const std::string& objective = run.plan.objective;
  const auto cost = [&](const Planning& p) {
    return objective == "memory" ? p.best().bytes : objective == "rank_hours" ? p.rank_hours() : p.best().seconds;
  };
  return *std::ranges::min_element(each, {}, cost);
}

std::string Planning::ranks_str() const {
  const auto plural = [](int n, std::string_view what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); };
  const int threads = problem.cluster.cluster.machine.threads;
  return plural(problem.ranks, "rank") + (threads > 1 ? " × " + plural(threads, "thread") : "");
}

RunConfig planned_here(const RunConfig& run, std::string& said, PlanProgress progress) {
  const RunPlanning all = plan_of_run(run, {.top = 1, .progress = std::move(progress)});
  const Planning& best = all.best();
  i64 tried = 0;
  for (const Planning& p : all.each) tried += p.plan.counts.tried;
  const auto line = [](const Planning& p) {
    return fmt::format("{}, {}: {} a step predicted", p.ranks_str(), p.best().keys.str(),
                       human_seconds(p.best().seconds));
  };
  said = fmt::format("planned  {}, the best of {} configurations for {}", line(best), tried, best.problem.cluster.name);
  for (const Planning& p : all.each)
    if (&p != &best) said += "\n         " + line(p);
  for (const std::string& why : all.without) said += "\n         " + why;
  return with_keys(all.run, best.best().keys);
}

}  // namespace stretto

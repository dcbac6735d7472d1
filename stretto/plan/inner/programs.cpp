#include "stretto/plan/inner/programs.h"

#include <algorithm>
#include <utility>

#include "stretto/plan/inner/tolerances.h"

namespace stretto {
namespace {

constexpr std::size_t at_once = 4;  // compiled side by side, whatever the number of threads
constexpr std::size_t recut = 2;    // of the best, for other cuts
constexpr int most_mixed_tries = 3;

double tasks_of(const PlanProblem& p, const RunKeys& k) { return 3.0 * p.pieces() * k.microbatches; }

}  // namespace

void BestPrograms::compile_best(const std::vector<Planned>& played) {
  for (std::vector<const Planned*> these; !(these = next(played)).empty();) {
    if (o_.progress) o_.progress("programs", double(programs_.size()), double(tolerance::places));
    compile(these);
  }
  for (const Planned& x : played)
    if (!likely(x)) known_.insert(x.keys);
}

// What may fit and is not compiled, the best first. If nothing is likely to, what is a little too large.
std::vector<BestPrograms::Estimate> BestPrograms::left(const std::vector<Planned>& played) const {
  std::vector<Estimate> all;
  const auto add = [&](auto may_fit) {
    for (const Planned& x : played)
      if (!known_.contains(x.keys) && may_fit(x))
        all.push_back({&x, cost_of(o_.objective, x.seconds * experience_.longer(x.keys), x.bytes)});
  };
  add([&](const Planned& x) { return likely(x); });
  if (all.empty() && that_fit().empty())
    add([&](const Planned& x) { return fits(x.bytes / tolerance::memory_slack); });
  std::ranges::sort(all, [](const Estimate& a, const Estimate& b) {
    return a.cost != b.cost ? a.cost < b.cost : a.played->keys < b.played->keys;
  });
  return all;
}

// A few at a time, and of each kind of which nothing is known one: it tells how long the others are.
std::vector<const Planned*> BestPrograms::next(const std::vector<Planned>& played) const {
  std::vector<double> costs;  // of what is better for sure
  for (const Planned& x : that_fit()) costs.push_back(cost(x));
  std::ranges::sort(costs);
  std::vector<const Planned*> these;
  Experience asked;
  double tasks = tasks_;
  std::size_t before = 0;
  for (const Estimate& x : left(played)) {
    const std::size_t place = before++ + (std::ranges::lower_bound(costs, x.cost) - costs.begin());
    if (!wanted(x, place, tasks) || asked.knows(x.played->keys)) continue;
    if (these.size() == at_once || programs_.size() + these.size() >= tolerance::most_programs) break;
    if (!experience_.knows(x.played->keys)) asked.add(x.played->keys, {});
    tasks += tasks_of(p_, x.played->keys);
    these.push_back(x.played);
  }
  return these;
}

bool BestPrograms::wanted(const Estimate& x, std::size_t place, double tasks) const {
  if (place < std::size_t(o_.compiled)) return true;
  if (o_.objective != Objective::time) return false;
  const double best = cost_of_best();
  return (place < tolerance::places && tasks < tolerance::most_tasks) || x.cost < best ||
         (x.cost < tolerance::rival * best && !schedules_.contains(x.played->keys.schedule) &&
          best < std::numeric_limits<double>::infinity());
}

void BestPrograms::compile(const std::vector<const Planned*>& these) {
  std::vector<RunKeys> keys;
  for (const Planned* x : these) keys.push_back(x->keys);
  std::vector<Planned> programs = predictor_.by_program(keys);
  for (std::size_t i = 0; i < these.size(); ++i) take(*these[i], std::move(programs[i]));
  drop_programs();
}

bool BestPrograms::take(const Planned& thought, Planned x) {
  ++plan_.counts.compiled;
  tasks_ += tasks_of(p_, x.keys);
  known_.insert(x.keys);
  if (!x.refused.empty()) return ++plan_.counts.refused, false;
  experience_.add(x.keys, {.longer = x.seconds / thought.seconds, .larger = x.bytes / thought.bytes});
  const bool fit = fits(x.bytes);
  if (fit) schedules_.insert(x.keys.schedule);
  if (!fit) ++plan_.counts.memory, x.program.reset();
  programs_.push_back(std::move(x));
  return fit;
}

// Programs are large: only those that may be shown or drawn are kept.
void BestPrograms::drop_programs() {
  std::size_t place = 0;
  const double tied = (1 + tolerance::tie) * cost_of_best();
  for (Planned* x : fitting())
    if (place++ > 1 && cost(*x) > tied) x->program.reset();
}

// With the cuts that are the best by what facts say that pieces take.
void BestPrograms::compile_better_cuts() {
  std::vector<Planned> better;
  for (const Planned* x : fitting()) {
    if (better.size() == recut) break;
    const double room = plan_.capacity / std::max(1.0, experience_.larger(x->keys));
    if (std::optional<Planned> y = predictor_.with_better_cuts(x->keys, room); y && !knows(y->keys))
      better.push_back(std::move(*y));
  }
  std::vector<const Planned*> these;
  for (const Planned& x : better) these.push_back(&x);
  if (!these.empty()) compile(these);
}

// Recompute that differs from stage to stage. A program that is too large says how much less may be thought to fit.
void BestPrograms::compile_mixed(const MixedRecompute& mixed) {
  double more = 0;
  for (int tried = 0; tried < most_mixed_tries; ++tried) {
    const auto room = [&](const RunKeys& k) {
      return plan_.capacity / std::max({1.0, more, experience_.larger(k)});
    };
    const std::optional<Planned> x = mixed.best(room);
    if (!x || knows(x->keys)) return;
    if (x->seconds * experience_.longer(x->keys) > tolerance::worth_differing * cost_of_best()) return;
    Planned program = predictor_.by_program(x->keys);
    more = program.bytes / x->bytes;
    if (take(*x, std::move(program))) return;
  }
}

double BestPrograms::cost_of_best() const {
  double best = std::numeric_limits<double>::infinity();
  for (const Planned& x : programs_)
    if (fits(x.bytes)) best = std::min(best, cost(x));
  return best;
}

std::vector<Planned*> BestPrograms::fitting() {
  std::vector<Planned*> all;
  for (Planned& x : programs_)
    if (fits(x.bytes)) all.push_back(&x);
  std::ranges::stable_sort(all, std::ranges::less(), [&](const Planned* x) { return cost(*x); });
  return all;
}

std::vector<Planned> BestPrograms::that_fit() const {
  std::vector<Planned> all;
  for (const Planned& x : programs_)
    if (fits(x.bytes)) all.push_back(x);
  return all;
}

std::optional<Planned> BestPrograms::smallest() const {
  const auto x = std::min_element(programs_.begin(), programs_.end(),
                                  [](const Planned& a, const Planned& b) { return a.bytes < b.bytes; });
  return x == programs_.end() ? std::nullopt : std::optional(*x);
}

}  // namespace stretto

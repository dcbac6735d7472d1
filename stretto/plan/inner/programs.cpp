#include "stretto/plan/inner/programs.h"

#include <algorithm>
#include <utility>

namespace stretto {
namespace {

constexpr std::size_t tries = 4;  // so many times the compiled ones wanted are compiled at most
constexpr int most_mixed_tries = 3;
constexpr double worth_differing = 0.995;  // what saves less is not worth stages that differ
constexpr double far = 1.04;               // times the best: turns are hardly ever wrong by more

RunKeys with_own_cuts(RunKeys k) {
  k.stages.clear();
  return k;
}

}  // namespace

void BestPrograms::compile_best(Left left, const MixedRecompute& mixed) {
  const std::size_t wanted = o_.compiled;
  std::size_t fitting = 0;
  while (fitting < wanted && plan_.counts.compiled < i64(tries * wanted)) {
    std::vector<const Planned*> these = next(left, wanted - fitting, &BestPrograms::likely);
    if (these.empty() && fitting == 0) these = next(left, wanted, &BestPrograms::perhaps);
    if (these.empty()) break;
    if (o_.progress) o_.progress("programs", double(fitting), double(wanted));
    std::vector<Planned> programs = compiled(these);
    for (std::size_t i = 0; i < these.size(); ++i) fitting += take(*these[i], std::move(programs[i]));
  }
  if (o_.objective == Objective::time) compile_mixed(mixed), compile_rivals(left);
  for (const Planned* x : left)
    if (x && !likely(*x)) known_.insert(x->keys);
}

// The best of what is left, so many.
std::vector<const Planned*> BestPrograms::next(Left& left, std::size_t most, Fits fit) const {
  std::vector<const Planned*> these;
  for (const Planned*& x : left)
    if (x && these.size() < most && (this->*fit)(*x)) these.push_back(std::exchange(x, nullptr));
  return these;
}

// One alone leaves cores idle: what the best may be compared with later goes beside it.
std::vector<Planned> BestPrograms::compiled(const std::vector<const Planned*>& these) {
  std::vector<RunKeys> keys;
  for (const Planned* x : these) keys.push_back(x->keys);
  const Planned* const best = fastest();
  const bool beside = keys.size() == 1 && best && may_have_own_cuts(*best) && !own_cuts_.contains(best->keys);
  if (beside) keys.push_back(with_own_cuts(best->keys));
  std::vector<Planned> programs = predictor_.by_program(keys);
  if (beside) own_cuts_[best->keys] = std::move(programs.back()), programs.pop_back();
  return programs;
}

bool BestPrograms::take(const Planned& thought, Planned x) {
  ++plan_.counts.compiled;
  known_.insert(x.keys);
  if (!x.refused.empty()) return ++plan_.counts.refused, false;
  held_.add(x.keys, x.bytes / thought.bytes);
  longer_[x.keys] = x.seconds / thought.seconds;
  const bool fit = fits(x.bytes);
  if (!fit) ++plan_.counts.memory, x.program.reset();
  programs_.push_back(std::move(x));
  return fit;
}

// Recompute that differs from stage to stage. A program that is too large says how much less may be thought to fit.
void BestPrograms::compile_mixed(const MixedRecompute& mixed) {
  double more = 0;
  for (int tried = 0; tried < most_mixed_tries; ++tried) {
    const auto room = [&](const RunKeys& k) { return plan_.capacity / std::max({1.0, more, held_.times(k)}); };
    const Planned* const best = fastest();
    const std::optional<Planned> x = mixed.best(room);
    if (!x || knows(x->keys)) return;
    if (best && x->seconds * longer_.at(best->keys) > worth_differing * best->seconds) return;
    Planned program = predictor_.by_program(x->keys);
    more = program.bytes / x->bytes;
    if (take(*x, std::move(program))) return;
  }
}

// Stages may be wrong by more for one schedule than for another. So the best is compiled with the compiler's own cuts
// too, and so is the best of every other schedule that is not far behind it. They go side by side: a rival that turns
// out to be far behind the best with its own cuts was compiled in vain, and counts for nothing.
void BestPrograms::compile_rivals(Left& left) {
  const Planned* const best = fastest();
  bool own = best && may_have_own_cuts(*best);
  if (const auto known = own ? own_cuts_.find(best->keys) : own_cuts_.end(); known != own_cuts_.end())
    take_own_cuts(std::move(known->second)), own = false;
  for (int tried = 0; tried < o_.compiled;) {
    const std::vector<const Planned**> rivals = rivals_of_the_best(left, o_.compiled - tried);
    std::vector<RunKeys> keys;
    if (own) keys.push_back(with_own_cuts(fastest()->keys));
    for (const Planned** x : rivals) keys.push_back(with_own_cuts((*x)->keys));
    if (keys.empty()) break;
    std::vector<Planned> programs = predictor_.by_program(keys);
    auto program = programs.begin();
    if (std::exchange(own, false)) take_own_cuts(std::move(*program++));
    const double limit = far * cost(*fastest());
    for (const Planned** x : rivals) {
      Planned compiled = std::move(*program++);
      if (cost(**x) >= limit) continue;
      const Planned* const thought = std::exchange(*x, nullptr);
      known_.insert(thought->keys);
      take(*thought, std::move(compiled));
      ++tried;
    }
  }
}

bool BestPrograms::may_have_own_cuts(const Planned& x) const {
  return o_.objective == Objective::time && x.keys.pipe > 1 && p_.parallel.stages.empty() &&
         x.keys.recompute_each.empty();
}

void BestPrograms::take_own_cuts(Planned x) {
  ++plan_.counts.compiled;
  Planned* const best = fastest();
  if (x.refused.empty() && fits(x.bytes) && cost(x) < cost(*best)) *best = std::move(x);
}

// One of each schedule of which no program is known to fit: where they stand in what is left.
std::vector<const Planned**> BestPrograms::rivals_of_the_best(Left& left, int most) {
  const Planned* const best = fastest();
  if (!best) return {};
  std::set<std::string_view> schedules;
  for (const Planned& x : programs_)
    if (fits(x.bytes)) schedules.insert(x.keys.schedule);
  std::vector<const Planned**> rivals;
  for (const Planned*& x : left)
    if (x && std::ssize(rivals) < most && likely(*x) && cost(*x) < far * cost(*best) &&
        schedules.insert(x->keys.schedule).second)
      rivals.push_back(&x);
  return rivals;
}

Planned* BestPrograms::fastest() {
  Planned* best = nullptr;
  for (Planned& x : programs_)
    if (fits(x.bytes) && (!best || cost(x) < cost(*best))) best = &x;
  return best;
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

#include "stretto/plan/programs.h"

#include <algorithm>
#include <utility>

namespace stretto {
namespace {

constexpr std::size_t tries = 4;  // so many times the compiled ones wanted are compiled at most
constexpr double far = 1.04;      // times the best: stages are hardly ever wrong by more

RunKeys with_own_cuts(RunKeys k) {
  k.stages.clear();
  return k;
}

}  // namespace

void BestPrograms::compile_best(Left left) {
  const std::size_t wanted = o_.compiled;
  std::size_t fitting = 0;
  while (fitting < wanted && plan_.counts.compiled < i64(tries * wanted)) {
    std::vector<const Planned*> these = next(left, wanted - fitting, &BestPrograms::likely);
    if (these.empty() && fitting == 0) these = next(left, wanted, &BestPrograms::perhaps);
    if (these.empty()) break;
    if (o_.progress) o_.progress("programs", double(fitting), double(wanted));
    std::vector<RunKeys> keys;
    for (const Planned* x : these) keys.push_back(x->keys);
    std::vector<Planned> programs = predictor_.by_program(keys);
    for (std::size_t i = 0; i < these.size(); ++i) fitting += take(*these[i], std::move(programs[i]));
  }
  if (o_.objective == Objective::time) compile_rivals(left);
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

bool BestPrograms::take(const Planned& thought, Planned x) {
  ++plan_.counts.compiled;
  known_.insert(x.keys);
  if (!x.refused.empty()) return ++plan_.counts.refused, false;
  held_.add(x.keys, x.bytes / thought.bytes);
  const bool fit = fits(x.bytes);
  if (!fit) ++plan_.counts.memory, x.program.reset();
  programs_.push_back(std::move(x));
  return fit;
}

// Stages may be wrong by more for one schedule than for another. So the best is compiled with the compiler's own cuts
// too, and so is the best of every other schedule that is not far behind it.
void BestPrograms::compile_rivals(Left& left) {
  if (Planned* const best = fastest(); best && best->keys.pipe > 1 && p_.parallel.stages.empty()) {
    Planned other = predictor_.by_program(with_own_cuts(best->keys));
    ++plan_.counts.compiled;
    if (other.refused.empty() && fits(other.bytes) && cost(other) < cost(*best)) *best = std::move(other);
  }
  for (int tried = 0; tried < o_.compiled;) {
    const std::vector<Planned> rivals = rivals_of_the_best(left, o_.compiled - tried);
    if (rivals.empty()) break;
    compile_with_own_cuts(rivals);
    tried += int(rivals.size());
  }
}

// One of each schedule of which no program is known to fit.
std::vector<Planned> BestPrograms::rivals_of_the_best(Left& left, int most) {
  const Planned* const best = fastest();
  if (!best) return {};
  std::set<std::string_view> schedules;
  for (const Planned& x : programs_)
    if (fits(x.bytes)) schedules.insert(x.keys.schedule);
  std::vector<Planned> rivals;
  for (const Planned*& x : left)
    if (x && std::ssize(rivals) < most && likely(*x) && cost(*x) < far * cost(*best) &&
        schedules.insert(x->keys.schedule).second)
      rivals.push_back(*std::exchange(x, nullptr));
  return rivals;
}

void BestPrograms::compile_with_own_cuts(const std::vector<Planned>& these) {
  std::vector<RunKeys> keys;
  for (const Planned& x : these) keys.push_back(with_own_cuts(x.keys));
  std::vector<Planned> programs = predictor_.by_program(keys);
  for (std::size_t i = 0; i < these.size(); ++i) {
    known_.insert(these[i].keys);
    take(these[i], std::move(programs[i]));
  }
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

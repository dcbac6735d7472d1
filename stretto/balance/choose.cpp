#include "stretto/balance/choose.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "stretto/balance/balance.h"
#include "stretto/balance/inner/loads.h"
#include "stretto/simulate/schedule_tape.h"

namespace stretto {
namespace {

constexpr std::ptrdiff_t least_plays = 12;  // of any schedule, however large

// Smaller is better: the step, and among equals the busiest actor, then the longest stage.
struct CutQuality {
  double seconds = 0, busiest = 0, longest = 0;
  bool better_than(const CutQuality& o) const {
    const auto differ = [](double a, double b) { return std::abs(a - b) > 1e-9 * std::min(a, b); };
    if (differ(seconds, o.seconds)) return seconds < o.seconds;
    if (differ(busiest, o.busiest)) return busiest < o.busiest;
    return differ(longest, o.longest) && longest < o.longest;
  }
};

std::vector<int> pieces_per_stage(const Cuts& cuts) {
  std::vector<int> pieces;
  for (std::size_t s = 0; s + 1 < cuts.size(); ++s) pieces.push_back(cuts[s + 1] - cuts[s]);
  return pieces;
}

// Plays a step for given cuts, as the runtime does it.
class CutClock {
 public:
  CutClock(const CutProblem& p, const Validated<Schedule>& s, std::ptrdiff_t most_actions)
      : p_(p), s_(*s), clock_(s, options()), plays_left_(std::max(least_plays, most_actions / clock_.nodes())) {}

  CutQuality operator()(const Cuts& cuts) {
    --plays_left_;
    if (p_.allowed && !p_.allowed(pieces_per_stage(cuts))) return {.seconds = std::numeric_limits<double>::infinity()};
    StageCosts costs;
    IdVector<ActorId, double> work(s_.rows.size()), update(s_.rows.size());
    CutQuality q;
    for (int s = 0; s < s_.stages; ++s) {
      const PieceTimes t = sum(s, cuts[s], cuts[s + 1]);
      costs.push_back(cost(s, t, cuts[s + 1]));
      q.longest = std::max(q.longest, t.microbatch());
      for (const auto& actor_of : s_.actor_of) {
        const ActorId actor = actor_of[StageId(s)];
        work[actor] += t.microbatch() * s_.microbatches / s_.pipes();
        update[actor] += t.update;
      }
    }
    q.seconds = clock_.makespan(costs) + *std::max_element(update.begin(), update.end());
    for (const ActorId a : work.ids()) q.busiest = std::max(q.busiest, work[a] + update[a]);
    return q;
  }
  std::ptrdiff_t plays_left() const { return plays_left_; }

 private:
  const std::vector<PieceTimes>& pieces(int stage) const { return p_.pieces[p_.kind.empty() ? 0 : p_.kind[stage]]; }
  PieceTimes sum(int stage, int begin, int end) const {
    PieceTimes sum;
    for (int i = begin; i < end; ++i) sum += pieces(stage)[i];
    return sum;
  }
  StageCost cost(int stage, const PieceTimes& t, int end) const {
    StageCost c{.F = t.F, .I = t.I, .W = t.W};
    const auto again = [](const PieceTimes& x) { return x.R > 0; };
    if (std::any_of(pieces(stage).begin(), pieces(stage).end(), again)) c.R = t.R;
    if (end - 1 < std::ssize(p_.bytes)) c.message_bytes = p_.bytes[end - 1];
    return c;
  }
  // These costs only tell where recompute is implied.
  SimulateOptions options() const {
    SimulateOptions o{.link = [link = p_.link](int, int) { return link; }};
    for (int s = 0; s < s_.stages; ++s) o.stages.push_back(cost(s, {}, 1));
    return o;
  }

  const CutProblem& p_;
  const Schedule& s_;
  StepClock clock_;
  std::ptrdiff_t plays_left_;
};

struct Judged {
  Cuts cuts;
  CutQuality quality;
};

// One round over all pairs of stages, near ones first: a piece moves from the one to the other, and what lies between
// them shifts. Did anything become better?
bool move_pieces(Judged& now, CutClock& clock, std::ptrdiff_t stop) {
  const int stages = std::ssize(now.cuts) - 1;
  bool moved = false;
  for (int distance = 1; distance < stages; ++distance)
    for (int giver = 0; giver < stages; ++giver)
      for (const int taker : {giver - distance, giver + distance}) {
        if (taker < 0 || taker >= stages || now.cuts[giver + 1] - now.cuts[giver] < 2) continue;
        if (clock.plays_left() <= stop) return false;
        Cuts cuts = now.cuts;
        for (int k = giver + 1; k <= taker; ++k) --cuts[k];
        for (int k = taker + 1; k <= giver; ++k) ++cuts[k];
        const CutQuality quality = clock(cuts);
        if (!quality.better_than(now.quality)) continue;
        now = {std::move(cuts), quality};
        moved = true;
      }
  return moved;
}

BalanceProblem loads_of(const CutProblem& p, const Schedule& s) {
  BalanceProblem b{.kind = p.kind, .actor_of = s.actor_of};
  for (const std::vector<PieceTimes>& pieces : p.pieces) {
    std::vector<double>& seconds = b.seconds.emplace_back();
    for (const PieceTimes& t : pieces) seconds.push_back(t.microbatch() + t.update / s.microbatches);
  }
  for (const double bytes : p.bytes) b.message.push_back(2 * p.link.seconds(bytes));
  return b;
}

}  // namespace

ChosenCuts choose_cuts(const CutProblem& p, const Validated<Schedule>& s, std::ptrdiff_t most_actions) {
  const BalanceProblem problem = loads_of(p, *s);
  const Loads loads(problem);
  CutClock clock(p, s, most_actions);
  std::vector<Judged> starts;
  std::vector all{even_cuts(loads), cuts_of(balance(problem).stage_of), smallest_stage(loads)};
  if (!p.first.empty()) all.push_back(cuts_of(cut(p.first, loads.pieces)));
  for (Cuts& cuts : all)
    if (std::none_of(starts.begin(), starts.end(), [&](const Judged& j) { return j.cuts == cuts; }))
      starts.push_back({cuts, clock(cuts)});
  const double even_seconds = starts[0].quality.seconds;
  const auto refused = [](const Judged& j) { return !std::isfinite(j.quality.seconds); };
  if (!std::ranges::all_of(starts, refused)) std::erase_if(starts, refused);
  // The most promising one last: it may use what the others leave.
  std::stable_sort(starts.begin(), starts.end(),
                   [](const Judged& a, const Judged& b) { return b.quality.better_than(a.quality); });
  for (std::ptrdiff_t left = std::ssize(starts); Judged & j : starts) {
    const std::ptrdiff_t stop = clock.plays_left() - clock.plays_left() / left--;
    while (move_pieces(j, clock, stop)) {
    }
  }
  const Judged& best = *std::min_element(
      starts.begin(), starts.end(), [](const Judged& a, const Judged& b) { return a.quality.better_than(b.quality); });
  return {.stage_of = stage_of(best.cuts), .seconds = best.quality.seconds, .even_seconds = even_seconds};
}

}  // namespace stretto

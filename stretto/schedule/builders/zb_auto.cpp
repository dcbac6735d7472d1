#include <algorithm>
#include <cmath>
#include <utility>

#include "stretto/base/error.h"
#include "stretto/schedule/builders/common.h"

namespace stretto::builders {

namespace {

// The three choices of the zero-bubble paper's heuristic; all eight combinations are tried.
struct Choices {
  bool gap_before_first_i;  // rather wait for the first input gradient than start a forward that would delay it
  bool prefer_i;            // leave a forward out when the input gradient of the next actor would come sooner
  bool fill_small_gaps;     // put a weight gradient into a gap that is no larger than the largest actor's idle time
};

// Grows all rows together, microbatch by microbatch: one more forward on the actors that can take it, then one input
// gradient on every actor from the last to the first; weight gradients fill what would be idle or make room in memory.
class Greedy {
 public:
  Greedy(const Request& r, double cap, double freed_by_i, const Choices& c)
      : p_(r.actors),
        m_(r.microbatches),
        cap_(cap + 1e-9),
        freed_by_i_(freed_by_i),
        times_(r.times),
        choices_(c),
        actors_(p_) {
    for (Actor& a : actors_) {
      a.row.reserve(3 * m_);
      a.f_end.reserve(m_);
      a.i_end.reserve(m_);
    }
    warm_up();
    for (int k = 1; k < m_; ++k) {
      forwards();
      for (int a = p_ - 1; a >= 0; --a) {
        Actor& x = actors_[a];
        fill(a, arrival(a, Phase::I));
        if (a == 0 && x.f == m_) {
          while (x.w < x.i) put(a, Phase::W);  // nobody is left to be delayed
        }
        put(a, Phase::I);
      }
    }
    for (int a = 0; a < p_; ++a) {
      while (actors_[a].w < m_) put(a, Phase::W);
    }
  }

  // The longest actor's time, then the time of all.
  std::pair<double, double> score() const {
    std::pair<double, double> s{0, 0};
    for (const Actor& a : actors_) {
      s.first = std::max(s.first, a.now - (a.f_end[0] - times_.F));
      s.second = std::max(s.second, a.now);
    }
    return s;
  }
  Row take_row(int actor) { return std::move(actors_[actor].row); }

 private:
  struct Actor {
    int f = 0, i = 0, w = 0;  // how many are placed
    double now = 0, idle = 0;
    std::vector<double> f_end, i_end;
    Row row;
  };

  double live(const Actor& x) const { return x.f - freed_by_i_ * x.i - (1 - freed_by_i_) * x.w; }

  // When what the next action of this kind needs from its neighbour is there.
  double arrival(int actor, Phase phase) const {
    const Actor& x = actors_[actor];
    if (phase == Phase::F && actor > 0) return actors_[actor - 1].f_end[x.f] + times_.message;
    if (phase == Phase::I && actor + 1 < p_) return actors_[actor + 1].i_end[x.i] + times_.message;
    return 0;
  }

  void put(int actor, Phase phase) {
    Actor& x = actors_[actor];
    const double start = std::max(x.now, arrival(actor, phase));
    if (x.f > 0) x.idle += start - x.now;
    most_idle_ = std::max(most_idle_, x.idle);
    int& count = phase == Phase::F ? x.f : phase == Phase::I ? x.i : x.w;
    x.now = start + (phase == Phase::F ? times_.F : phase == Phase::I ? times_.I : times_.W);
    if (phase == Phase::F) x.f_end.push_back(x.now);
    if (phase == Phase::I) x.i_end.push_back(x.now);
    x.row.add(phase, actor, count++);
  }

  // Weight gradients before the actor's next action may start at `when`.
  void fill(int actor, double when) {
    Actor& x = actors_[actor];
    while (x.w < x.i && x.now + times_.W <= when) put(actor, Phase::W);
    if (x.w == x.i || x.now >= when) return;
    if (when - x.now > most_idle_ - x.idle || choices_.fill_small_gaps) put(actor, Phase::W);
  }

  // All that comes before the first input gradient returns.
  void warm_up() {
    for (int a = 0; a < p_; ++a) put(a, Phase::F);
    std::vector<int> more(p_);
    double i_end = actors_.back().now + times_.I;
    for (int a = p_ - 2; a >= 0; --a) {
      const Actor& x = actors_[a];
      int& n = more[a];
      double now = x.now;
      const double back = i_end + times_.message;
      while (x.f + n < m_ && live(x) + n + 1 <= cap_) {
        if (choices_.gap_before_first_i ? now + times_.F > back : now >= back) break;
        now += times_.F, ++n;
      }
      i_end = std::max(now, back) + times_.I;
    }
    // An actor that starts as many forwards as the one before it would only wait for them.
    for (int a = 1; a < p_; ++a) {
      int& n = more[a];
      if (1 + n < m_) n = std::min(n, std::max(0, more[a - 1] - 1));
    }
    for (int a = 0; a < p_; ++a) {
      for (int k = 0; k < more[a]; ++k) put(a, Phase::F);
    }
    for (int a = p_ - 1; a >= 0; --a) put(a, Phase::I);
  }

  bool wants_forward(int actor) const {
    const Actor& x = actors_[actor];
    if (x.f == m_) return false;
    if (!choices_.prefer_i || actor + 1 == p_) return true;
    const Actor& next = actors_[actor + 1];
    if (x.f < next.f + 2) return true;                                    // the next actor would run dry
    const double back = next.now + times_.F + times_.I + times_.message;  // its next input gradient, at best
    if (x.now >= back) return false;
    const double excess = live(x) + 1 - cap_;
    const double room = excess <= 0 ? 0 : std::min(std::ceil(excess / (1 - freed_by_i_)), 1.0 * (x.i - x.w));
    if (x.now + times_.F + room * times_.W <= back) return true;
    return back - x.now > most_idle_ - x.idle;
  }

  void forwards() {
    std::vector<char> wants(p_);
    for (int a = 0; a < p_; ++a) wants[a] = wants_forward(a);
    for (int a = p_ - 2; a >= 0; --a) wants[a] = wants[a] && wants[a + 1];
    for (int a = 0; a < p_; ++a) {
      if (!wants[a]) continue;
      Actor& x = actors_[a];
      while (live(x) + 1 > cap_) {
        STRETTO_ASSERT(x.w < x.i, "an input gradient went before every forward after the warm-up");
        put(a, Phase::W);
      }
      if (a > 0) fill(a, arrival(a, Phase::F));
      put(a, Phase::F);
    }
  }

  const int p_, m_;
  const double cap_, freed_by_i_;
  const Times times_;
  const Choices choices_;
  std::vector<Actor> actors_;
  double most_idle_ = 0;
};

double cap_of(const Request& r) {
  const double memory = r.memory == 0 ? r.actors : r.memory;
  if (!(memory >= 1)) {
    throw Error("zb-auto", "a memory cap of {} activations per actor holds no microbatch", memory)
        .hint("use at least 1, {} for 1f1b's memory, {} for no bubble", r.actors, 2 * r.actors);
  }
  if (!(r.freed_by_i >= 0 && r.freed_by_i <= 1)) {
    throw Error("zb-auto", "an input gradient cannot free {} of an activation", r.freed_by_i)
        .hint("use a share of 0 to 1");
  }
  for (const double t : {r.times.F, r.times.I, r.times.W, r.times.message}) {
    if (!(t >= 0) || !std::isfinite(t)) {
      throw Error("zb-auto", "a time of {}", t).hint("times are finite and not negative");
    }
  }
  return memory;
}

}  // namespace

// Where an input gradient frees a share of an activation already, as the zero-bubble paper counts, the order that keeps
// the cap even if only weight gradients free anything is taken unless the other one is faster.
Schedule zb_auto(const Request& r) {
  Schedule s = looped(r);
  const double cap = cap_of(r);
  std::pair<double, double> best;
  for (int choice = 0; choice < (r.freed_by_i > 0 ? 16 : 8); ++choice) {
    Greedy g(r, cap, choice < 8 ? 0 : r.freed_by_i,
             {.gap_before_first_i = !(choice & 4), .prefer_i = !(choice & 2), .fill_small_gaps = !(choice & 1)});
    const auto score = g.score();
    if (choice > 0 && (choice < 8 ? score >= best : score.first >= best.first * (1 - 1e-9))) continue;
    best = score;
    for (int a = 0; a < r.actors; ++a) s.rows[a] = g.take_row(a);
  }
  return s;
}

}  // namespace stretto::builders

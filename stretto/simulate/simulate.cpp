#include "stretto/simulate/simulate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "stretto/simulate/engine.h"
#include "stretto/simulate/memory.h"
#include "stretto/simulate/schedule_tape.h"

namespace stretto {

namespace {

// Repeats the step, every actor going on when it is done, until all end times have moved by the same amount since one
// of the last steps. The end times of a step depend only on those of the step before, so nothing changes afterwards.
double period_of(const Schedule& s, Player& player, const SimulateOptions& o) {
  std::vector<std::vector<double>> ends;
  std::vector<double> from(s.rows.size());
  for (int step = 0; step < o.repeats; ++step) {
    player.play(from);
    ends.push_back(player.ends());
    const std::vector<double>& now = ends.back();
    for (std::size_t lag = 1; lag <= 4 && lag < ends.size(); ++lag) {
      const std::vector<double>& then = ends[ends.size() - 1 - lag];
      double least = std::numeric_limits<double>::infinity(), most = -least;
      for (std::size_t a = 0; a < now.size(); ++a) {
        least = std::min(least, now[a] - then[a]), most = std::max(most, now[a] - then[a]);
      }
      if (most - least <= 1e-9 * std::abs(most)) return most / double(lag);
    }
    for (std::size_t a = 0; a < now.size(); ++a) from[a] = now[a] + o.epilogue;
    // Weights that are held twice are updated from both pipes' gradients: neither holder goes on without the other.
    for (std::size_t stage = 0; s.pipes() > 1 && stage < std::size_t(s.stages); ++stage) {
      double& down = from[std::size_t(s.actor_of[0][stage])];
      double& up = from[std::size_t(s.actor_of[1][stage])];
      down = up = std::max(down, up);
    }
  }
  // No regularity yet: the average over the later half.
  const auto last = [&](std::size_t step) { return *std::max_element(ends[step].begin(), ends[step].end()); };
  const std::size_t end = ends.size() - 1, middle = end / 2;
  return end == 0 ? last(0) + o.epilogue : (last(end) - last(middle)) / double(end - middle);
}

bool feeds(const Action& from, const Action& to) {
  if (from.microbatch != to.microbatch || from.pipe != to.pipe || from.piece != to.piece) return false;
  if (to.phase == Phase::F) return from.phase == Phase::F && from.stage + 1 == to.stage;
  return (to.phase == Phase::B || to.phase == Phase::I) && (from.phase == Phase::B || from.phase == Phase::I) &&
         from.stage == to.stage + 1;
}

class Trace {
 public:
  Trace(const Schedule& s, const ScheduleTape& t, const Player& player) : s_(s), t_(t), player_(player) {
    actor_of_.resize(t.tape.nodes());
    for (std::uint32_t a = 0; a < s.rows.size(); ++a) {
      std::fill(actor_of_.begin() + t.tape.rows[a], actor_of_.begin() + t.tape.rows[a + 1], a);
    }
  }

  std::vector<Span> spans(bool messages) const {
    std::vector<Span> spans;
    spans.reserve(s_.actions() + (messages ? t_.tape.edges.size() : 0));
    double free = 0;
    for (std::uint32_t n = 0; n < t_.tape.nodes(); ++n) {
      const std::uint32_t actor = actor_of_[n];
      if (n == t_.tape.rows[actor]) free = 0;
      const std::string waited = player_.ready(n) > free ? "message " + message(player_.sender(n), n) + " from actor " +
                                                               std::to_string(actor_of_[player_.sender(n)])
                                                         : std::string();
      free = player_.end(n);
      for (const Action& a : members(n)) {
        Span& span = spans.emplace_back();
        span.actor = int(actor);
        span.start = player_.start(n);
        span.end = free;
        span.action = a;
        if (t_.items[n].implied) span.action->phase = Phase::R;
        span.waited = waited;
      }
    }
    if (!messages) return spans;
    for (std::uint32_t n = 0; n < t_.tape.nodes(); ++n) {
      for (std::uint32_t e = t_.tape.first_edge[n]; e < t_.tape.first_edge[n + 1]; ++e) {
        const Edge& edge = t_.tape.edges[e];
        if (edge.delay <= 0) continue;
        Span& span = spans.emplace_back();
        span.actor = int(actor_of_[n]);
        span.lane = Lane::message;
        span.start = player_.sent(e);
        span.end = span.start + edge.delay;
        span.label = message(n, edge.to) + " to actor " + std::to_string(actor_of_[edge.to]);
        if (span.start > player_.end(n)) span.waited = "the link";
      }
    }
    std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
      return a.actor != b.actor ? a.actor < b.actor : a.start < b.start;
    });
    return spans;
  }

 private:
  std::span<const Action> members(std::uint32_t n) const {
    return std::span(s_.rows[actor_of_[n]]).subspan(t_.items[n].position, t_.items[n].count);
  }
  // A message has the name of the action that makes it.
  std::string message(std::uint32_t from, std::uint32_t to) const {
    for (const Action& a : members(to)) {
      for (const Action& b : members(from)) {
        if (feeds(b, a)) return cell(b, s_.stages);
      }
    }
    return {};
  }

  const Schedule& s_;
  const ScheduleTape& t_;
  const Player& player_;
  std::vector<std::uint32_t> actor_of_;
};

}  // namespace

Prediction simulate(const Schedule& s, const SimulateOptions& o) {
  const std::vector<StageCost> costs = stage_costs(s, o);
  const ScheduleTape t = tape_of(s, costs, o);
  Player player(t.tape);
  if (!player.stuck().empty()) throw never_ends(s, t, player.stuck());

  Prediction p;
  if (o.repeats > 0) p.period = period_of(s, player, o);
  player.play(std::vector<double>(s.rows.size()));

  const std::size_t actors = s.rows.size();
  double first = std::numeric_limits<double>::infinity(), last = 0, all_busy = 0;
  std::vector<double> busy(actors);
  for (std::size_t a = 0; a < actors; ++a) {
    const std::uint32_t begin = t.tape.rows[a], end = t.tape.rows[a + 1];
    if (begin == end) continue;
    for (std::uint32_t n = begin; n < end; ++n) busy[a] += t.tape.durations[n];
    all_busy += busy[a];
    first = std::min(first, player.start(begin));
    last = std::max(last, player.end(end - 1));
    p.span = std::max(p.span, player.end(end - 1) - player.start(begin));
  }
  p.makespan = last - first;
  p.period_barrier = p.makespan + o.epilogue;
  const double whole = p.makespan > 0 ? p.makespan : 1;
  for (const double b : busy) p.actor_bubble.push_back(p.makespan > 0 ? 1 - b / whole : 0);
  p.bubble = p.makespan > 0 ? 1 - all_busy / (whole * double(actors)) : 0;

  const bool sizes = std::any_of(costs.begin(), costs.end(),
                                 [](const StageCost& c) { return c.activation_bytes > 0 || c.weight_bytes > 0; });
  const Memory activations(s, t, costs, o.freed_by_i, Memory::Unit::activations),
      bytes(s, t, costs, o.freed_by_i, Memory::Unit::bytes);
  p.peak = activations.peaks();
  p.weights.resize(actors);
  if (sizes) p.peak_bytes = bytes.peaks(), p.weight_bytes.resize(actors);
  for (const auto& placement : s.actor_of) {
    for (std::size_t stage = 0; stage < placement.size(); ++stage) {
      const std::size_t a = std::size_t(placement[stage]);
      p.weights[a] += double(s.actors()) / s.stages;
      if (sizes) p.weight_bytes[a] += costs[stage].weight_bytes;
    }
  }

  p.timeline.actors = s.actors();
  p.timeline.stages = s.stages;
  p.timeline.title = s.name;
  if (o.timeline) {
    p.timeline.spans = Trace(s, t, player).spans(o.messages);
    p.timeline.memory = (sizes ? bytes : activations).curves(player);
    if (sizes) p.timeline.memory_unit = "bytes";
  }
  return p;
}

}  // namespace stretto

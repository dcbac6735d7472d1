#include "stretto/simulate/simulate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stretto/simulate/engine.h"
#include "stretto/simulate/inner/memory.h"
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
      if (most - least <= 1e-9 * std::abs(most)) return most / lag;
    }
    for (std::size_t a = 0; a < now.size(); ++a) from[a] = now[a] + o.epilogue;
    // Weights that are held twice are updated from both pipes' gradients: neither holder goes on without the other.
    for (int stage = 0; s.pipes() > 1 && stage < s.stages; ++stage) {
      double& down = from[s.actor_of[down_pipe][StageId(stage)].value];
      double& up = from[s.actor_of[up_pipe][StageId(stage)].value];
      down = up = std::max(down, up);
    }
  }
  // No regularity yet: the average over the later half.
  const auto last = [&](std::size_t step) { return *std::max_element(ends[step].begin(), ends[step].end()); };
  const std::size_t end = ends.size() - 1, middle = end / 2;
  return end == 0 ? last(0) + o.epilogue : (last(end) - last(middle)) / (end - middle);
}

class Trace {
 public:
  Trace(const ScheduleTape& t, const Player& player, int stages) : t_(t), player_(player), stages_(stages) {}

  std::vector<Span> spans(bool messages) const {
    std::vector<Span> spans;
    spans.reserve(t_.index.size() + (messages ? t_.tape.edges.size() : 0));
    double free = 0;
    for (std::uint32_t n = 0; n < t_.tape.nodes(); ++n) {
      const int actor = t_.actor(n).value;
      if (n == t_.tape.rows[actor]) free = 0;
      const std::string waited = player_.ready(n) > free ? waited_for(*player_.sender(n), n) : std::string();
      free = player_.end(n);
      Action a = t_.action(n);
      if (t_.items[n].implied) a.phase = Phase::R;
      spans.push_back({.actor = actor, .start = player_.start(n), .end = free, .action = a, .waited = waited});
      if (a.phase == Phase::B && t_.sends(n)) spans.back().halfway = free - t_.tape.edges[t_.tape.first_edge[n]].early;
    }
    if (!messages) return spans;
    for (std::uint32_t n = 0; n < t_.tape.nodes(); ++n)
      for (std::uint32_t e = t_.tape.first_edge[n]; e < t_.tape.first_edge[n + 1]; ++e)
        if (t_.tape.edges[e].delay > 0) spans.push_back(message_span(n, e));
    std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
      return a.actor != b.actor ? a.actor < b.actor : a.start < b.start;
    });
    return spans;
  }

 private:
  // A message has the name of the action that makes it.
  std::string waited_for(std::uint32_t from, std::uint32_t to) const {
    for (std::uint32_t e = t_.tape.first_edge[from]; e < t_.tape.first_edge[from + 1]; ++e)
      if (t_.tape.edges[e].to == to) return fmt::format("message {} from actor {}", name(e), t_.actor(from).value);
    return {};
  }
  std::string name(std::uint32_t edge) const { return cell(t_.index.actions[t_.sent[edge]], stages_); }
  Span message_span(std::uint32_t node, std::uint32_t e) const {
    const Edge& edge = t_.tape.edges[e];
    const double start = player_.sent(e);
    return {.actor = t_.actor(node).value,
            .lane = Lane::message,
            .start = start,
            .end = start + edge.delay,
            .label = fmt::format("{} to actor {}", name(e), t_.actor(edge.to).value),
            .waited = start > player_.end(node) ? "the link" : ""};
  }

  const ScheduleTape& t_;
  const Player& player_;
  const int stages_;
};

// Makespan, span and bubbles of what was played.
void add_times(Prediction& p, const ScheduleTape& t, const Player& player) {
  const std::size_t actors = t.tape.actors();
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
  for (const double b : busy) p.actor_bubble.push_back(p.makespan > 0 ? 1 - b / p.makespan : 0);
  p.bubble = p.makespan > 0 ? 1 - all_busy / (p.makespan * actors) : 0;
}

void add_weights(Prediction& p, const Schedule& s, const StageCosts& costs, bool sizes) {
  p.weights.resize(s.rows.size());
  if (sizes) p.weight_bytes.resize(s.rows.size());
  for (const auto& placement : s.actor_of)
    for (const StageId stage : placement.ids()) {
      p.weights[placement[stage].value] += 1.0 * s.actors() / s.stages;
      if (sizes) p.weight_bytes[placement[stage].value] += costs[stage].weight_bytes;
    }
}

}  // namespace

Prediction simulate(const Validated<Schedule>& valid, const SimulateOptions& o) {
  const Schedule& s = *valid;
  const StageCosts costs = stage_costs(s, o);
  const ScheduleTape t = tape_of(valid, costs, o);
  Player player(t.tape);
  STRETTO_ASSERT(player.stuck().empty(), "a valid schedule can be played");

  Prediction p;
  if (o.repeats > 0) p.period = period_of(s, player, o);
  player.play(std::vector<double>(s.rows.size()));
  add_times(p, t, player);
  p.period_barrier = p.makespan + o.epilogue;

  const bool sizes = std::any_of(costs.begin(), costs.end(),
                                 [](const StageCost& c) { return c.activation_bytes > 0 || c.weight_bytes > 0; });
  const Memory activations(s, t, costs, o.freed_by_i, Memory::Unit::activations),
      bytes(s, t, costs, o.freed_by_i, Memory::Unit::bytes);
  p.peak = activations.peaks();
  if (sizes) p.peak_bytes = bytes.peaks();
  add_weights(p, s, costs, sizes);

  p.timeline.actors = s.actors();
  p.timeline.stages = s.stages;
  p.timeline.title = s.name;
  if (o.timeline) {
    p.timeline.spans = Trace(t, player, s.stages).spans(o.messages);
    p.timeline.memory = (sizes ? bytes : activations).curves(player);
    if (sizes) p.timeline.memory_unit = "bytes";
  }
  return p;
}

Prediction simulate(const Schedule& s, const SimulateOptions& o) {
  const auto forward = [](const Row& row) {
    return std::all_of(row.begin(), row.end(), [](const Action& a) { return a.phase == Phase::F; });
  };
  return simulate(valid(s, {.forward_only = std::all_of(s.rows.begin(), s.rows.end(), forward)}), o);
}

}  // namespace stretto

#include "stretto/plan/inner/played_schedule.h"

#include <algorithm>
#include <map>
#include <utility>

namespace stretto {
namespace {

SimulateOptions as_it_runs(const Schedule& s, bool remakes) {
  SimulateOptions o{.repeats = 0, .timeline = false};
  StageCost any{.B = 2};
  if (remakes) any.R = 0;
  o.stages.assign(s.stages, any);
  return o;
}

}  // namespace

PlayedSchedule::PlayedSchedule(Validated<Schedule> s, bool remakes)
    : schedule_(std::move(s)),
      options_(as_it_runs(*schedule_, remakes)),
      tape_(tape_of(schedule_, options_.stages, options_)),
      player_(tape_.tape),
      from_(schedule_->rows.size()),
      visits_(tape_.items.size()) {
  find_visits();
  find_last_gradients();
}

// Forward and recompute go up through a stage's pieces, backward goes down.
void PlayedSchedule::find_visits() {
  std::vector<std::uint32_t> next(schedule_->rows.size(), 0);
  for (std::uint32_t n = tape_.items.size(); n-- > 0;) {
    const Action& a = tape_.action(n);
    const bool remakes = tape_.items[n].implied || a.phase == Phase::R;
    if (!remakes && a.phase == Phase::W) continue;
    const bool up = remakes || a.phase == Phase::F;
    std::uint32_t& later = next[tape_.actor(n).value];
    visits_[n] = Visits{{a.stage, up}, {a.stage, !up}, later};
    later = n;
  }
}

void PlayedSchedule::find_last_gradients() {
  last_gradients_.resize(schedule_->rows.size());
  std::vector<std::map<StageId, std::uint32_t>> last(last_gradients_.size());
  for (std::uint32_t n = 0; n < tape_.items.size(); ++n)
    if (const Phase p = tape_.action(n).phase; !tape_.items[n].implied && (p == Phase::B || p == Phase::W))
      last[tape_.actor(n).value][tape_.action(n).stage] = n;
  const auto makes_weights = [&](std::uint32_t n) { return tape_.action(n).phase == Phase::W; };
  for (std::size_t a = 0; a < last.size(); ++a) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<StageId>> rows;
    for (const auto& [stage, node] : last[a]) {
      std::uint32_t from = node, to = node;
      while (makes_weights(node) && from > tape_.tape.rows[a] && makes_weights(from - 1)) --from;
      while (makes_weights(node) && to + 1 < tape_.tape.rows[a + 1] && makes_weights(to + 1)) ++to;
      rows[{from, to}].push_back(stage);
    }
    for (auto& [nodes, stages] : rows) {
      const double part = 1.0 / double(stages.size());
      for (std::size_t i = 0; i < stages.size(); ++i)
        last_gradients_[a].push_back(
            {stages[stages.size() - 1 - i], nodes.first, nodes.second, part * double(i), part * double(i + 1)});
    }
  }
}

// Of what its actor visits next, unless that is where it is.
double PlayedSchedule::gather_after(std::uint32_t n, const PlayTimes& times) const {
  std::uint32_t next = visits_[n]->next;
  if (next > 0 && tape_.items[next].implied && !times.again_at_once[tape_.action(next).stage])
    next = visits_[next]->next;
  if (next == 0) return 0;
  const Visit& to = visits_[next]->from;
  const StorageWire::Pieces& pieces = times.cut[to.stage];
  const Visit& here = visits_[n]->to;
  if (here.stage == to.stage && (here == to || pieces.size() == 1)) return 0;
  const bool forward = tape_.action(next).phase == Phase::F;
  const WirePiece& piece = to.front ? pieces.front() : pieces.back();
  return forward ? piece.gather : piece.gather_back;
}

void PlayedSchedule::find_for_messages(const PlayTimes& times) {
  for_messages_.assign(tape_.items.size(), 0);
  Tape& tape = tape_.tape;
  for (std::uint32_t n = 0; n < tape_.items.size(); ++n)
    for (std::uint32_t e = tape.first_edge[n]; e < tape.first_edge[n + 1]; ++e) {
      for_messages_[tape.edges[e].to] += times.handling;
      if (times.sender_waits) for_messages_[n] += std::exchange(tape.edges[e].delay, 0) + times.handling;
    }
}

// With gathers and scatters beside it: when it ends. Of a B its gradient is there before that.
double PlayedSchedule::stored(std::uint32_t n, const PlayTimes& times, double start) {
  const Action& a = tape_.action(n);
  const StorageWire::Pieces& pieces = times.cut[a.stage];
  StorageWire& wire = wires_[tape_.actor(n).value];
  const double takes = tape_.tape.durations[n], next = visits_[n] ? gather_after(n, times) : 0;
  if (tape_.items[n].implied || a.phase == Phase::R)
    return times.again_at_once[a.stage] ? wire.again(start, pieces, takes, next) : start + takes;
  if (a.phase == Phase::F) return wire.forward(start, pieces, takes, next);
  if (a.phase == Phase::I) return wire.backward(start, pieces, takes, next);
  if (a.phase == Phase::W) return wire.weights(start, pieces, takes);
  const double all = *times.stages[a.stage].B, given = all > 0 ? takes * times.given[a.stage] / all : 0;
  const double middle = wire.backward(start, pieces, given, next);
  const double end = wire.weights(middle, pieces, takes - given);
  for (std::uint32_t e = tape_.tape.first_edge[n]; e < tape_.tape.first_edge[n + 1]; ++e)
    tape_.tape.edges[e].early = end - middle;
  return end;
}

// Sums go one after the other, each from when its gradients are made.
double PlayedSchedule::summed(std::size_t actor, const PlayTimes& times) const {
  const double last = player_.ends()[actor];
  double wire = 0, waits = 0;
  for (const Gradients& g : last_gradients_[actor]) {
    const PlayTimes::Sums& s = times.sums[g.stage];
    // Of the first stage, for whose gradients nobody waits, a piece's come right after those of its inputs.
    const bool all_the_time = tape_.action(g.from).phase != Phase::B || g.stage.value == 0;
    const double first = player_.start(g.from) + (all_the_time ? 0 : times.given[g.stage]);
    const double takes = std::max(0.0, player_.end(g.to) - first);
    const double from = first + g.begin * takes, end = first + g.end * takes;
    wire = std::max(wire, from + (end - from) / s.pieces) + s.seconds;
    wire = std::max(wire, end + s.last);
    if (times.hidden_sums) waits += s.seconds * (1 - *times.hidden_sums * (1 - times.hidden.beside));
  }
  return times.hidden_sums ? last + waits : std::max(wire, last);
}

const PlayedEnds& PlayedSchedule::ends(const PlayTimes& times, const ActorLinks& links) {
  options_.link = links;
  set_times(tape_, times.stages, options_);
  for (std::uint32_t n = 0; n < tape_.items.size(); ++n)
    if (const Action& a = tape_.action(n); a.phase == Phase::B && !tape_.items[n].implied)
      for (std::uint32_t e = tape_.tape.first_edge[n]; e < tape_.tape.first_edge[n + 1]; ++e)
        tape_.tape.edges[e].early = *times.stages[a.stage].B - times.given[a.stage];
  find_for_messages(times);
  wires_.assign(from_.size(), StorageWire(times.hidden));
  const bool cut = !times.cut.empty();
  for (std::size_t a = 0; cut && a < from_.size(); ++a)
    if (const std::uint32_t n = tape_.tape.rows[a]; n < tape_.tape.rows[a + 1])
      wires_[a].first(times.cut[tape_.action(n).stage].front().gather);
  player_.play(from_, [&](std::uint32_t n, double free, double ready) {
    double& takes = tape_.tape.durations[n];
    takes += for_messages_[n];
    if (!cut) return;
    const double start = std::max(free, ready);
    double end = stored(n, times, start);
    const std::size_t actor = tape_.actor(n).value;
    if (n + 1 == tape_.tape.rows[actor + 1]) end = wires_[actor].settle(end);
    takes = end - start;
  });
  ends_.last = player_.ends();
  ends_.summed.resize(from_.size());
  ends_.first.resize(from_.size());
  for (std::size_t a = 0; a < from_.size(); ++a) {
    ends_.summed[a] = summed(a, times);
    if (const std::uint32_t n = tape_.tape.rows[a]; n < tape_.tape.rows[a + 1]) ends_.first[a] = player_.start(n);
  }
  return ends_;
}

}  // namespace stretto

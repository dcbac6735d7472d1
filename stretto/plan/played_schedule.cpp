#include "stretto/plan/played_schedule.h"

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
      visits_(tape_.items.size()),
      turn_at_(tape_.items.size()),
      paired_(tape_.items.size()) {
  find_turns();
  find_pairs();
  find_visits();
  find_last_gradients();
}

void PlayedSchedule::find_turns() {
  for (std::uint32_t n = 0; n < tape_.items.size(); ++n) {
    const Action& a = tape_.action(n);
    if (tape_.items[n].implied || (a.phase != Phase::F && a.phase != Phase::I)) continue;
    const bool followed =
        n + 1 < tape_.items.size() && tape_.actor(n + 1) == tape_.actor(n) && tape_.action(n + 1).phase == Phase::W;
    if (followed) {
      const Action& w = tape_.action(n + 1);
      const bool own = a.phase == Phase::I && w.stage == a.stage && w.microbatch == a.microbatch;
      turns_.push_back({n, a.stage, w.stage, a.phase, !own});
      turn_at_[n] = turns_.size();
    } else if (a.phase == Phase::I) {
      alone_.push_back({n, a.stage});
    }
  }
}

// A forward and a B, in either order; what is made again before the B is a node of its own.
void PlayedSchedule::find_pairs() {
  for (std::uint32_t n = 0; n < tape_.items.size(); ++n) {
    const Action& a = tape_.action(n);
    if (tape_.items[n].implied || a.overlap == 0) continue;
    std::uint32_t next = n + 1;
    if (next < tape_.items.size() && tape_.items[next].implied) ++next;
    if (next >= tape_.items.size() || tape_.actor(next) != tape_.actor(n)) continue;
    const Action& b = tape_.action(next);
    const bool both = (a.phase == Phase::F && b.phase == Phase::B) || (a.phase == Phase::B && b.phase == Phase::F);
    if (b.overlap != a.overlap || !both) continue;
    pairs_.push_back({n, next});
    paired_[n] = Paired::first, paired_[next] = Paired::second;
  }
}

// Forward goes up through a stage's pieces, backward goes down; what is made again goes up.
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
      if (from > tape_.tape.rows[a] && turn_at_[from - 1]) --from;
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

void PlayedSchedule::set_pair(const Pair& p, const PlayTimes& times) {
  const bool forward_first = tape_.action(p.first).phase == Phase::F;
  const StageId f = tape_.action(forward_first ? p.first : p.second).stage;
  const StageId b = tape_.action(forward_first ? p.second : p.first).stage;
  const StageCost &of_f = times.stages[f], &of_b = times.stages[b];
  const double total = of_f.F + *of_b.B - (times.groups[f].saved + times.groups[b].saved) / 2;
  const double f_given = std::clamp(of_f.F + times.groups[f].late_f, 0.0, total);
  const double b_given = std::clamp(of_b.I + times.groups[b].late_b, 0.0, total);
  const double first = forward_first ? f_given : b_given, second = forward_first ? b_given : f_given;
  Tape& tape = tape_.tape;
  tape.durations[p.first] = first;
  tape.durations[p.second] = total - first;
  for (std::uint32_t e = tape.first_edge[p.first]; e < tape.first_edge[p.first + 1]; ++e) tape.edges[e].early = 0;
  for (std::uint32_t e = tape.first_edge[p.second]; e < tape.first_edge[p.second + 1]; ++e)
    tape.edges[e].early = std::min(total - second, total - first);
}

// What of a W is done while a message is waited for fills no gap later.
void PlayedSchedule::set_turn(const Turn& t, const PlayTimes& times, double late) {
  const bool forward = t.phase == Phase::F;
  const Filled& first = (forward ? times.f : times.i)[t.stage];
  const double alone = forward ? times.stages[t.stage].F : times.alone[t.stage], w = times.w[t.of_w];
  const double rest = (forward ? times.f : times.i)[t.of_w].w;
  const double share = w > 0 && t.apart ? 1 - std::min(late, w) / w : 1;
  std::vector<double>& durations = tape_.tape.durations;
  durations[t.node] = alone + share * (first.first - alone);
  durations[t.node + 1] = std::max(0.0, alone + share * (first.first + rest - alone) - durations[t.node]);
}

// Of what its actor visits next, unless that is where it is.
double PlayedSchedule::gather_after(std::uint32_t n, const PlayTimes& times) const {
  std::uint32_t next = visits_[n]->next;
  if (next > 0 && tape_.items[next].implied && !times.again_at_once) next = visits_[next]->next;
  if (next == 0) return 0;
  const Visit& to = visits_[next]->from;
  const StorageWire::Pieces& pieces = times.cut[to.stage];
  const Visit& here = visits_[n]->to;
  if (here.stage == to.stage && (here == to || pieces.size() == 1)) return 0;
  const bool forward = tape_.action(next).phase == Phase::F;
  const WirePiece& piece = to.front ? pieces.front() : pieces.back();
  return forward ? piece.gather : piece.gather_back;
}

// What is made again is a part of what needs it then.
void PlayedSchedule::again_after_messages() {
  std::vector<double>& durations = tape_.tape.durations;
  for (std::uint32_t n = 0; n < tape_.items.size(); ++n)
    if (tape_.items[n].implied) durations[n + 1] += std::exchange(durations[n], 0);
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

// A B, or a forward or an I with the W after it, where weight gradients fill gaps. A B in an overlap group takes what
// the group leaves it.
WireTurn PlayedSchedule::turn_at(std::uint32_t n, const PlayTimes& times) const {
  const Action& a = tape_.action(n);
  const bool forward = a.phase == Phase::F, both = a.phase == Phase::B;
  const StageId of_w = both ? a.stage : turns_[turn_at_[n] - 1].of_w;
  const StageCost& c = times.stages[a.stage];
  double alone = forward ? c.F : times.alone[a.stage];
  double filled = both ? c.I : (forward ? times.f : times.i)[a.stage].first;
  double rest = both ? *c.B - c.I : (forward ? times.f : times.i)[of_w].w;
  if (paired_[n]) {
    const double takes = tape_.tape.durations[n];
    rest = paired_[n] == Paired::first ? 0 : std::min(rest, takes);
    alone = filled = takes - rest;
  }
  return {.chain = times.cut[a.stage],
          .forward = forward,
          .alone = std::min(alone, filled),
          .filled = filled,
          .weights = times.cut[of_w],
          .seconds = times.w[of_w],
          .inside = std::max(0.0, times.w[of_w] - rest),
          .own = both || !turns_[turn_at_[n] - 1].apart,
          .late = both && times.late_adds && !paired_[n],
          .next = gather_after(n, times)};
}

// With gathers and scatters beside it: when it ends.
double PlayedSchedule::stored(std::uint32_t n, const PlayTimes& times, double free, double start) {
  const Action& a = tape_.action(n);
  const StorageWire::Pieces& pieces = times.cut[a.stage];
  StorageWire& wire = wires_[tape_.actor(n).value];
  double& turn_end = turn_ends_[tape_.actor(n).value];
  const double takes = tape_.tape.durations[n], next = visits_[n] ? gather_after(n, times) : 0;
  if (tape_.items[n].implied || a.phase == Phase::R)
    return times.again_at_once ? wire.again(start, pieces, takes, next) : start + takes;
  if (times.arranged && (a.phase == Phase::B || turn_at_[n])) {
    WireTurn turn = turn_at(n, times);
    if (times.by_arrival) turn.early = std::max(0.0, start - free);
    const TurnEnds ends = wire.turn(start, turn);
    if (a.phase == Phase::B) return paired_[n] ? ends.all : give_early(n, ends);
    turn_end = ends.all;
    return ends.given;
  }
  if (a.phase == Phase::F) return wire.forward(start, pieces, takes, next);
  if (a.phase == Phase::I) return wire.backward(start, pieces, takes, next);
  if (a.phase == Phase::W && times.arranged && turn_end > 0) return std::max(start, std::exchange(turn_end, 0));
  if (a.phase == Phase::W) return wire.weights(start, pieces, takes);
  const StageCost& c = times.stages[a.stage];
  const double given = *c.B > 0 ? takes * c.I / *c.B : 0, middle = wire.backward(start, pieces, given, next);
  const TurnEnds ends{middle, wire.weights(middle, pieces, takes - given)};
  return paired_[n] ? ends.all : give_early(n, ends);
}

// Of a B its gradient is there before it ends.
double PlayedSchedule::give_early(std::uint32_t n, const TurnEnds& ends) {
  for (std::uint32_t e = tape_.tape.first_edge[n]; e < tape_.tape.first_edge[n + 1]; ++e)
    tape_.tape.edges[e].early = ends.all - ends.given;
  return ends.all;
}

void PlayedSchedule::store(std::uint32_t n, const PlayTimes& times, double free, double ready) {
  const double begin = std::max(free, ready);
  const Action& a = tape_.action(n);
  StorageWire& wire = wires_[tape_.actor(n).value];
  double& takes = tape_.tape.durations[n];
  double start = begin;
  if (tape_.items[n].implied && times.receives_first) return;
  if (times.receives_first && n > 0 && tape_.items[n - 1].implied) {
    const double again = *times.stages[a.stage].R;
    start = times.again_at_once ? wire.again(start, times.cut[a.stage], again, 0) : start + again;
    takes -= again;
  }
  double end = stored(n, times, free, start);
  if (n + 1 == tape_.tape.rows[tape_.actor(n).value + 1]) end = wire.settle(end);
  takes = end - begin;
}

// Sums go one after the other, each from when its gradients are made.
double PlayedSchedule::summed(std::size_t actor, const PlayTimes& times) const {
  const double last = player_.ends()[actor];
  double wire = 0, waits = 0;
  for (const Gradients& g : last_gradients_[actor]) {
    const PlayTimes::Sums& s = times.sums[g.stage];
    // Of the first stage, for whose gradients nobody waits, a piece's come right after those of its inputs; and beside
    // other collectives they fill gaps.
    const bool all_the_time = tape_.action(g.from).phase != Phase::B || g.stage.value == 0 || times.arranged;
    const double first = player_.start(g.from) + (all_the_time ? 0 : times.stages[g.stage].I);
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
  for (const Turn& t : turns_) set_turn(t, times, 0);
  for (const auto& [node, stage] : alone_) tape_.tape.durations[node] = times.alone[stage];
  for (const Pair& p : pairs_) set_pair(p, times);
  if (times.receives_first) again_after_messages();
  find_for_messages(times);
  wires_.assign(from_.size(), StorageWire(times.hidden));
  turn_ends_.assign(from_.size(), 0);
  const bool cut = !times.cut.empty();
  for (std::size_t a = 0; cut && a < from_.size(); ++a)
    if (const std::uint32_t n = tape_.tape.rows[a]; n < tape_.tape.rows[a + 1])
      wires_[a].first(times.cut[tape_.action(n).stage].front().gather);
  player_.play(from_, [&](std::uint32_t n, double free, double ready) {
    if (turn_at_[n] && times.by_arrival) set_turn(turns_[turn_at_[n] - 1], times, std::max(0.0, ready - free));
    tape_.tape.durations[n] += for_messages_[n];
    if (cut) store(n, times, free, ready);
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

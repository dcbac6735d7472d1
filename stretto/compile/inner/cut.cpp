#include "stretto/compile/inner/cut.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "stretto/balance/balance.h"
#include "stretto/balance/pieces.h"
#include "stretto/compile/placed.h"
#include "stretto/shard/epilogue.h"
#include "stretto/step/cost.h"
#include "stretto/step/split.h"

namespace stretto {
namespace {

IdVector<StageId, Recompute> recompute_of(const Parallel& p, int stages) {
  const std::vector<Recompute>& given = p.recompute;
  if (given.size() < 2) return IdVector<StageId, Recompute>(stages, given.empty() ? Recompute::none : given[0]);
  if (std::ssize(given) != stages)
    throw Error("recompute", "{} choices are given and there are {} stages", given.size(), stages)
        .hint("give one for all stages, or one per stage")
        .about({"parallel.recompute"});
  return IdVector<StageId, Recompute>(given);
}

// What a piece costs: its tasks, and the update of its parameters.
std::vector<PieceTimes> times_of(const Step& step, const Machine& machine, int states) {
  std::vector<PieceTimes> times = piece_times(step, machine);
  IdVector<ParamId, char> seen(step.params.size(), 0);
  const double arrays = 3.0 + 2.0 * states;  // parameter and states read and written, gradient
  const double bandwidth = machine.memory_bandwidth * (machine.rates ? machine.rates->elements : 1);
  for (const Accumulator& a : step.accumulators)
    if (!std::exchange(seen[a.param], 1))
      times[a.piece.value / step.segments].update +=
          arrays * step.bytes({wide(step.params[a.param].dtype), step.params[a.param].dims}) / bandwidth;
  return times;
}

// What was measured: of each piece on an actor of the usual speed, and how much longer a stage takes where it is.
struct Measured {
  std::vector<MeasuredPiece> pieces;
  std::vector<double> slower;  // per stage, the mean of its pipes
};
std::optional<Measured> measured(const Step& step, const Schedule& schedule, const Parallel& p) {
  if (!p.measured) return std::nullopt;
  TimesApart apart = taken_apart(*p.measured, kinds_of_pieces(step), schedule.actors());
  Measured m{.pieces = std::move(apart.pieces), .slower = std::vector<double>(schedule.stages, 0)};
  for (const auto& actor_of : schedule.actor_of)
    for (const StageId s : actor_of.ids()) m.slower[s.value] += apart.slower[actor_of[s].value] / schedule.pipes();
  return m;
}

std::vector<int> chosen(const StepGraph& graph, const Step& step, const Schedule& schedule, const Parallel& p,
                        const IdVector<StageId, Recompute>& modes, int states) {
  if (schedule.stages == 1) return std::vector(step.pieces / step.segments, 0);
  const Validated<Schedule> playable = valid(schedule, {.forward_only = true});  // evaluation has no backward
  const Cluster cluster = placed(cluster_of(p), p.mesh.ranks());
  CutProblem problem{.link = link(cluster, 0, p.mesh.ranks() / p.mesh.extent("pipe"))};
  for (const Crossing& x : crossings(step)) problem.bytes.push_back(x.forward);
  const std::optional<Measured> known = measured(step, schedule, p);
  std::vector<std::pair<Recompute, double>> kinds;  // of stages: what they make again, how slow their actor is
  for (const StageId s : modes.ids()) {
    const std::pair kind{modes[s], known ? known->slower[s.value] : 1.0};
    const auto it = std::find(kinds.begin(), kinds.end(), kind);
    problem.kind.push_back(it - kinds.begin());
    if (it != kinds.end()) continue;
    kinds.push_back(kind);
    const SplitOptions o{.recompute = IdVector<PieceId, Recompute>(step.pieces, modes[s])};
    const bool again = modes[s] != Recompute::none;
    std::vector<PieceTimes> times = times_of(again ? split(graph, o) : step, cluster.machine, states);
    problem.pieces.push_back(known ? as_measured(std::move(times), known->pieces, kind.second) : std::move(times));
  }
  return choose_cuts(problem, playable).stage_of;
}

}  // namespace

void check_measured(const Graph& g, const MeasuredTimes& t) {
  const int pieces = pieces_of(g);
  std::vector<char> there(pieces, 0);
  const auto refuse = [&](std::string what) {
    throw Error(t.file.empty() ? "times" : t.file, "{}", what)
        .hint("measure this run: stretto train RUN.toml --log.profile=FILE")
        .about({"parallel.times"});
  };
  for (const MeasuredPiece& p : t.pieces) {
    if (p.piece >= pieces)
      refuse(
          fmt::format("these times are of another model: they have a piece {}, and this one has {}", p.piece, pieces));
    there[p.piece] = 1;
  }
  if (const auto none = std::find(there.begin(), there.end(), 0); none != there.end())
    refuse(fmt::format("these times are of another model: they have no piece {}, and this one has {}",
                       none - there.begin(), pieces));
  if (const u64 own = g.hash(); t.graph != own)
    refuse(
        fmt::format("these times are of another model, batch or layout: a rank computed {:016x} there and {:016x} here",
                    t.graph, own));
}

int pieces_of(const Graph& g) {
  int pieces = 1;
  for (const Node& n : g.nodes) pieces = std::max<int>(pieces, n.piece + 1);
  return pieces;
}

Cut cut_step(const StepGraph& graph, const Schedule& schedule, const Parallel& p, int states) {
  const IdVector<StageId, Recompute> modes = recompute_of(p, schedule.stages);
  const bool again = std::any_of(modes.begin(), modes.end(), [](Recompute m) { return m != Recompute::none; });
  Cut r;
  if (p.stages.empty() || !again) r.step = split(graph);
  const int pieces = pieces_of(graph.graph) / graph.segments;
  for (int stage : p.stages.empty() ? chosen(graph, r.step, schedule, p, modes, states) : cut(p.stages, pieces))
    r.stage_of.resize(r.stage_of.size() + std::size_t(graph.segments), StageId(stage));
  const int stages = r.stage_of.back().value + 1;
  if (stages != schedule.stages)
    throw Error("stages", "{} stages are given and the schedule has {}", stages, schedule.stages)
        .hint("give {} numbers of pieces", schedule.stages)
        .about({"parallel.stages"});
  if (again) {
    SplitOptions o{.stage_of = r.stage_of};
    for (StageId stage : r.stage_of) o.recompute.push_back(modes[stage]);
    r.step = split(graph, o);
  }
  refuse(verify(r, schedule));
  return r;
}

std::vector<Fault> verify(const Cut& c, const Schedule& schedule) {
  std::vector<Fault> faults;
  const auto bad = [&](std::string what) { faults.push_back({"cut", std::move(what), ""}); };
  if (std::ssize(c.stage_of.list()) != c.step.pieces)
    bad(fmt::format("stages of {} pieces are given and the step has {}", c.stage_of.size(), c.step.pieces));
  int before = 0;
  for (PieceId piece : c.stage_of.ids()) {
    const int stage = c.stage_of[piece].value, step = stage - std::exchange(before, stage);
    if (step != 0 && (step != 1 || piece == PieceId(0)))
      bad(fmt::format("piece {} is of stage {}, out of turn", piece.value, stage));
  }
  if (before + 1 != schedule.stages)
    bad(fmt::format("there are {} stages and the schedule has {}", before + 1, schedule.stages));
  return faults;
}

Step with_accumulators(Step s, int pipes, const Sharded* sharded) {
  const auto own = s.accumulators.ids();
  for (int pipe = 1; pipe < pipes; ++pipe)
    for (AccumulatorId a : own) {
      s.accumulators.push_back(s.accumulators[a]);
      s.accumulators.back().pipe = PipeId(pipe);
    }
  if (!sharded) return s;
  for (const ShardedParam& p : sharded->params) s.updated.push_back(p.updated);
  IdVector<ParamId, int> count(s.params.size(), 0);
  for (const Accumulator& a : s.accumulators) ++count[a.param];
  for (Accumulator& a : s.accumulators)
    if (count[a.param] == 1) a.summed = summed_as_it_is(*sharded, a.param);
  return s;
}

}  // namespace stretto

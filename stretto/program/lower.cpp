#include "stretto/program/lower.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "stretto/fuse/fuse.h"
#include "stretto/program/emit/buckets.h"
#include "stretto/program/emit/emitter.h"
#include "stretto/program/emit/epilogue.h"
#include "stretto/program/emit/gathers.h"
#include "stretto/program/emit/rows.h"
#include "stretto/program/emit/transfers.h"
#include "stretto/program/frozen.h"
#include "stretto/program/memory/memory.h"
#include "stretto/program/memory/room.h"
#include "stretto/program/overlap/region.h"
#include "stretto/program/proofs/order.h"

namespace stretto {
namespace {

// Where a task's results go: into an accumulator they are added, and a result that is an argument too takes its memory.
ResultMemories memories(const Task& t) {
  ResultMemories all;
  for (const Binding& b : t.outputs) {
    ResultMemory m{.accumulate = as<AccumulatorId>(b) && (t.part == Part::W || t.part == Part::A)};
    const auto same = std::find(t.inputs.begin(), t.inputs.end(), b);
    if (same != t.inputs.end()) m.same_memory = ArgumentId(same - t.inputs.begin());
    all.push_back(m);
  }
  return all;
}

IdVector<TaskId, std::shared_ptr<const Calls>> fuse_all(const Step& s) {
  std::map<std::pair<const Graph*, std::vector<ResultMemory>>, std::shared_ptr<const Calls>> known;
  IdVector<TaskId, std::shared_ptr<const Calls>> all;
  for (const Task& t : s.tasks) {
    const ResultMemories m = memories(t);
    auto& calls = known[{t.body.get(), m.list()}];
    if (!calls) calls = std::make_shared<const Calls>(fuse(*t.body, m));
    all.push_back(calls);
  }
  return all;
}

// Who updates a parameter: the actor of its first gradient; a frozen one's first reader; else the first actor.
IdVector<ParamId, ActorId> find_owners(const Program& p) {
  IdVector<ParamId, std::optional<ActorId>> found(p.step->params.size());
  for (const Accumulator& a : p.step->accumulators)
    if (!found[a.param]) found[a.param] = p.actor_of(a.piece);
  for (const Task& t : p.step->tasks)
    if (t.part == Part::F || t.part == Part::U)
      for (const Binding& b : t.inputs)
        if (const ParamId* param = as<ParamId>(b); param && !found[*param]) found[*param] = p.actor_of(*t.piece);
  IdVector<ParamId, ActorId> owners;
  for (const std::optional<ActorId>& a : found) owners.push_back(a.value_or(ActorId(0)));
  return owners;
}

std::vector<std::string> frozen_axes(const Step& s, const LowerOptions& options) {
  if (options.params_of) return options.params_of->frozen_axes;
  std::set<std::string> axes;
  const IdVector<ParamId, bool> frozen = frozen_params(s);
  for (ParamId i : options.param_axes.ids())
    if (frozen[i]) axes.insert(options.param_axes[i].begin(), options.param_axes[i].end());
  return {axes.begin(), axes.end()};
}

// Everything but instructions and memory.
Program frame(Step step, const Schedule& schedule, IdVector<PieceId, StageId> stage_of, const LowerOptions& options) {
  Program p{.schedule = schedule,
            .stage_of = std::move(stage_of),
            .microbatches = schedule.microbatches,
            .states = options.states,
            .rows = options.rows,
            .shared = options.shared,
            .threads = options.threads};
  for (const Axis& a : options.mesh)
    if (a.name != "pipe") p.mesh.push_back(a);
  p.actors.resize(schedule.rows.size());
  p.pipe_of.assign(std::max<std::size_t>(1, schedule.microbatches), PipeId(0));
  for (const Row& row : schedule.rows)
    for (const Action& a : row) p.pipe_of[a.microbatch] = a.pipe;
  p.frozen_axes = frozen_axes(step, options);
  add_sums(step, p, bucket_bytes(options.link, p.ranks_per_actor()));
  p.step = std::make_shared<const Step>(std::move(step));
  p.calls = fuse_all(*p.step);
  p.owners = find_owners(p);
  return p;
}

// What follows the row belongs to its last turn or to turns of its own.
void cut_rest(Program& p, ActorId actor, std::size_t rows) {
  const Code& code = p.actors[actor].code;
  const std::size_t from = std::max<std::size_t>(rows, 1) - 1, end = code.turns().size();
  if (from < end) rewrite_turns(p, actor, from, end, written_out(code, {from, end - from}));
}

}  // namespace

Program lower(Step step, const Schedule& schedule, IdVector<PieceId, StageId> stage_of, const LowerOptions& options) {
  Program p = frame(std::move(step), schedule, std::move(stage_of), options);
  Emitter emitter(p, options.remote);
  IdVector<ActorId, std::size_t> rows;  // turns that end with the row
  for (ActorId a : p.actors.ids()) {
    emit_prologue(emitter, a);
    rows.push_back(emit_row(emitter, a));
  }
  emit_gradients(emitter);
  for (ActorId a : p.actors.ids()) emit_totals(emitter, a);
  emit_epilogue(emitter);
  for (ActorId a : p.actors.ids()) cut_rest(p, a, rows[a]);
  for (ActorId a : p.actors.ids()) place_gathers(p, a, options.reshard);
  say_when_there_is_room(p);
  if (options.overlap) overlap_calls(p, *options.overlap);
  if (options.remote) keep_sent(p);
  refuse(settle_order(p));
  if (options.purpose == Purpose::facts) return p;
  plan_memory(p, {options.params_of, options.undo, options.purpose == Purpose::sizes});
  if (options.purpose == Purpose::run) refuse(verify(p));
  return p;
}

}  // namespace stretto

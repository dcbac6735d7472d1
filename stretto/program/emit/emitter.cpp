#include "stretto/program/emit/emitter.h"

#include <algorithm>
#include <map>

#include "stretto/base/match.h"

namespace stretto {
namespace {

template <class T>
void sort_unique(std::vector<T>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

}  // namespace

Emitter::Emitter(Program& p, bool remote)
    : program(p), step(*p.step), index(step), transfers(p), remote_(remote), received_(p.actors.size()) {
  const std::size_t pipes = p.schedule.actor_of.size();
  ran_.assign(p.actors.size(), std::vector(pipes, IdVector<TaskId, char>(step.tasks.size(), 0)));
  for (PipeId pipe : ids_until<PipeId>(pipes)) {
    actor_of_.emplace_back();
    for (const Task& t : step.tasks) actor_of_.back().push_back(find_actor(t, pipe));
  }
  find_firsts();
  find_readers();
  find_targets();
}

void Emitter::find_firsts() {
  std::map<std::pair<Part, PieceId>, TaskId> known;
  for (TaskId id : step.tasks.ids()) {
    const Task& t = step.tasks[id];
    const bool shared = t.part == Part::W || t.part == Part::A;
    first_of_.push_back(shared ? known.try_emplace({t.part, step.first_segment(*t.piece)}, id).first->second : id);
  }
}

std::optional<ActorId> Emitter::find_actor(const Task& t, PipeId pipe) const {
  if (of_a_piece(t.part)) return program.actor_of(*t.piece, pipe);
  switch (t.part) {
    case Part::sum:
      return step.buckets[std::get<BucketId>(t.about)].actor;
    case Part::combine:
    case Part::norm:
    case Part::update:
      return program.owners[t.param()];
    case Part::finite:
      return program.actor_of(*t.piece, std::get<LossOfPipe>(t.about).pipe);
    default:
      return std::nullopt;
  }
}

std::optional<ActorId> Emitter::actor_of(TaskId t, PipeId pipe) const { return actor_of_[pipe.value][t]; }

void Emitter::run(ActorId actor, TaskId task, MicrobatchId m, std::optional<ActionId> action) {
  const Task& t = step.tasks[task];
  for (const Binding& b : t.inputs)
    if (const ValueId* v = as<ValueId>(b); v && actor_of(step.values[*v].producer, m) != actor)
      if (!has_received(actor, *v, m)) put(actor, Receive{receive(*v, m, actor)});
  char& ran = ran_[actor][program.pipe_of[m].value][first_of_[task]];
  put(actor, Run{.task = task, .microbatch = m, .overwrite = !ran || step.levels > 0, .action = action});
  ran = 1;
  for (const Binding& b : t.outputs)
    if (const ValueId* v = as<ValueId>(b))
      for (ActorId target : targets_of(*v, m))
        if (target != actor) put(actor, Send{transfer(*v, m, target)});
}

void Emitter::put(ActorId actor, Instruction i) {
  if (turn_)
    turn_->push_back(std::move(i));
  else
    program.actors[actor].code.push_back(std::move(i));
}

bool Emitter::has_received(ActorId actor, ValueId v, MicrobatchId m) const {
  const auto it = received_[actor].find(v);
  return it != received_[actor].end() && it->second[m.value];
}

TransferId Emitter::receive(ValueId v, MicrobatchId m, ActorId target) {
  received_[target].try_emplace(v, program.pipe_of.size()).first->second[m.value] = true;
  return transfer(v, m, target);
}

CollectiveId Emitter::start(ActorId actor, TaskId task, MicrobatchId m, std::optional<ActionId> action) {
  const CollectiveId id(program.actors[actor].collectives++);
  put(actor, Start{{.task = task, .microbatch = m, .action = action}, id});
  return id;
}

void Emitter::await(ActorId actor, CollectiveId id, TaskId task) { put(actor, Await{id, task}); }

void Emitter::exchange(ActorId source, ActorId target, TransferId t) {
  program.actors[source].code.push_back(Send{t});
  program.actors[target].code.push_back(Receive{t});
}

void Emitter::everywhere(TaskId task) {
  const std::optional<ActorId> only = actor_of(task, PipeId(0));
  for (ActorId a : program.actors.ids())
    if (!only || *only == a) run(a, task);
}

TransferId Emitter::transfer(ValueId value, MicrobatchId m, ActorId target) {
  const std::vector<ActorId>& targets = targets_of(value, m);
  const bool alone = targets.size() == 1 && targets[0] == target;
  return transfers.of_value(value, m, *actor_of(step.values[value].producer, m), target, !remote_ && alone);
}

void Emitter::find_readers() {
  readers_.resize(step.params.size());
  for (const auto& actors : actor_of_)
    for (TaskId t : step.tasks.ids())
      for (const Binding& b : step.tasks[t].inputs)
        if (const ParamId* p = as<ParamId>(b); p && actors[t]) readers_[*p].push_back(*actors[t]);
  for (std::vector<ActorId>& r : readers_) sort_unique(r);
}

void Emitter::find_targets() {
  for (const auto& actors : actor_of_) {
    auto& targets = targets_.emplace_back(step.values.size());
    for (ValueId v : step.values.ids()) {
      for (TaskId c : step.values[v].consumers)
        if (actors[c]) targets[v].push_back(*actors[c]);
      sort_unique(targets[v]);
    }
  }
}

}  // namespace stretto

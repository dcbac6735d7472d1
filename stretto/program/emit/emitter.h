// Appends instructions to the actors' code: a run with the messages that it needs and that it feeds.
//
//   Emitter emit(program, false);
//   emit.run(actor, task, microbatch, action);
#pragma once
#include <optional>
#include <unordered_map>
#include <vector>

#include "stretto/program/emit/task_index.h"
#include "stretto/program/emit/transfers.h"
#include "stretto/program/program.h"

namespace stretto {

class Emitter {
 public:
  // `remote`: actors share no memory, so nothing is made in another actor's.
  Emitter(Program&, bool remote);

  // Appends a run, with receives of what it needs from other actors before it and sends of what they need after it.
  void run(ActorId, TaskId, MicrobatchId = MicrobatchId(0), std::optional<ActionId> = {});
  CollectiveId start(ActorId, TaskId, MicrobatchId = MicrobatchId(0), std::optional<ActionId> = {});
  void await(ActorId, CollectiveId, TaskId);
  // Sends something persistent from one actor to another.
  void exchange(ActorId source, ActorId target, TransferId);
  // What follows goes to this list instead of to the end of the actor's code; null: no longer.
  void write_to(std::vector<Instruction>* turn) { turn_ = turn; }

  // Runs a per-step task where it belongs: on the actor that owns its parameter or has its piece, or on all actors.
  void everywhere(TaskId);

  // The actor that runs a task for a pipe; none: all of them do.
  std::optional<ActorId> actor_of(TaskId, PipeId) const;
  std::optional<ActorId> actor_of(TaskId t, MicrobatchId m) const { return actor_of(t, program.pipe_of[m]); }
  const std::vector<ActorId>& readers_of(ParamId p) const { return readers_[p]; }  // actors, ascending
  // Is it the first of the step, of those that add to the same accumulators?
  bool is_first(ActorId a, TaskId t, MicrobatchId m) const { return !ran_[a][program.pipe_of[m].value][first_of_[t]]; }
  bool has_received(ActorId, ValueId, MicrobatchId) const;
  // A message with a value, to an actor or from the one that makes it.
  TransferId send(ValueId v, MicrobatchId m, ActorId target) { return transfer(v, m, target); }
  TransferId receive(ValueId, MicrobatchId, ActorId target);

  Program& program;
  const Step& step;
  const TaskIndex index;
  Transfers transfers;

 private:
  std::optional<ActorId> find_actor(const Task&, PipeId) const;
  const std::vector<ActorId>& targets_of(ValueId v, MicrobatchId m) const {
    return targets_[program.pipe_of[m].value][v];
  }
  TransferId transfer(ValueId, MicrobatchId, ActorId target);
  void put(ActorId, Instruction);

  void find_firsts();
  void find_readers();
  void find_targets();

  bool remote_;
  IdVector<ParamId, std::vector<ActorId>> readers_;
  std::vector<IdVector<TaskId, std::optional<ActorId>>> actor_of_;  // per pipe
  std::vector<IdVector<ValueId, std::vector<ActorId>>> targets_;    // per pipe: who reads it
  IdVector<TaskId, TaskId> first_of_;  // of W and A: the first that adds to the same accumulators
  IdVector<ActorId, std::vector<IdVector<TaskId, char>>> ran_;                  // per pipe
  IdVector<ActorId, std::unordered_map<ValueId, std::vector<bool>>> received_;  // per microbatch
  std::vector<Instruction>* turn_ = nullptr;
};

}  // namespace stretto

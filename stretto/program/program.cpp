#include "stretto/program/program.h"

#include <algorithm>
#include <bit>

namespace stretto {
namespace {

u64 hash_instruction(const Instruction& i) {
  const auto run = [](const Run& r) {
    u64 h = hash_of(r.task.value, r.microbatch.value, r.overwrite);
    if (r.calls) hash_into(h, hash_of(r.calls->from.value, r.calls->to.value));
    return h;
  };
  return match(
      i, [&](const Run& r) { return run(r); }, [](const Send& s) { return hash_of(1, s.transfer.value); },
      [](const Receive& r) { return hash_of(2, r.transfer.value); },
      [&](const Start& s) { return hash_of(5, s.collective.value, run(s.run)); },
      [](const Await& w) { return hash_of(6, w.collective.value); });
}

}  // namespace

std::optional<Slot> ActorProgram::place_of(ParamId i) const {
  if (const Offset at = param_at[i]) return Slot{.arena = Arena::params, .offset = *at};
  if (const Offset at = frozen_at[i]) return Slot{.arena = Arena::frozen, .offset = *at};
  return std::nullopt;
}

int SharedRows::parts(const Mesh& mesh) const {
  int ranks = 1;
  if (neighbours)
    for (const std::string& axis : axes) ranks *= mesh.extent(axis);
  return ranks;
}

AccumulatorId Program::accumulator(AccumulatorId a, MicrobatchId m) const {
  const std::size_t own = step->accumulators.size() / (schedule.actor_of.size() + step->levels);
  const std::size_t copy = step->levels > 0 ? std::popcount(m.value) : pipe_of[m].value;
  return AccumulatorId(a.value + own * copy);
}

i64 Program::first_row(MicrobatchId m, const Coordinates& at) const {
  if (!shared.neighbours) return i64{m.value} * rows;
  const i64 own = rows / shared.parts(mesh);
  return (i64{m.value} + block_of(mesh, at, shared.axes) * (microbatches - 1)) * own;
}

ActorId Program::actor_of_output(OutputId output, MicrobatchId m) const {
  for (const Task& t : step->tasks)
    if (t.part == Part::F && std::find(t.outputs.begin(), t.outputs.end(), Binding(output)) != t.outputs.end())
      return actor_of(*t.piece, pipe_of[m]);
  return ActorId(0);
}

std::vector<int> Program::pieces_per_stage() const {
  std::vector<int> n(stage_of.back().value + 1, 0);
  for (StageId s : stage_of) ++n[s.value];
  for (int& pieces : n) pieces /= step->segments;
  return n;
}

u64 Program::hash() const {
  u64 h = hash_of(schedule.hash(), microbatches, states);
  for (const Task& t : step->tasks) hash_into(h, t.body->hash());
  for (const ActorProgram& a : actors) {
    for (const Instruction& i : a.code) hash_into(h, hash_instruction(i));
    for (const Slot& s : a.slots) hash_into(h, hash_of(s.arena, s.offset));
  }
  return h;
}

}  // namespace stretto

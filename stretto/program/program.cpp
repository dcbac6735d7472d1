#include "stretto/program/program.h"

#include <algorithm>
#include <bit>

namespace stretto {
namespace {

u64 hash_instruction(const Run& r) { return hash_of(r.task, r.microbatch, r.overwrite); }
u64 hash_instruction(const Send& s) { return hash_of(1, s.transfer); }
u64 hash_instruction(const Receive& r) { return hash_of(2, r.transfer); }
u64 hash_instruction(const StartSum& s) { return hash_of(3, s.bucket); }
u64 hash_instruction(const AwaitSum& s) { return hash_of(4, s.bucket); }
u64 hash_instruction(const Start& s) { return hash_of(5, s.number, s.run.task, s.run.microbatch); }
u64 hash_instruction(const Await& s) { return hash_of(6, s.number); }

}  // namespace

int SharedRows::parts(const Mesh& mesh) const {
  int ranks = 1;
  if (neighbours)
    for (const std::string& axis : axes) ranks *= mesh.extent(axis);
  return ranks;
}

std::uint32_t Program::copy_of(std::uint32_t microbatch) const {
  return step->levels > 0 ? std::uint32_t(std::popcount(microbatch)) : pipe_of[microbatch];
}

i64 Program::first_row(std::uint32_t microbatch, const Coordinates& at) const {
  if (!shared.neighbours) return i64(microbatch) * rows;
  const i64 own = rows / shared.parts(mesh);
  return (i64(microbatch) + block_of(mesh, at, shared.axes) * (microbatches - 1)) * own;
}

int Program::actor_of_output(std::uint32_t output, int microbatch) const {
  for (const Task& t : step->tasks)
    if (t.part == Part::F &&
        std::find(t.outputs.begin(), t.outputs.end(), Binding{Place::output, output}) != t.outputs.end())
      return actor_of(t.piece, pipe_of[std::size_t(microbatch)]);
  return 0;
}

std::vector<int> Program::pieces_per_stage() const {
  std::vector<int> n(std::size_t(stage_of.back()) + 1, 0);
  for (int s : stage_of) ++n[std::size_t(s)];
  return n;
}

u64 Program::hash() const {
  u64 h = hash_of(schedule.hash(), microbatches, states, poll);
  for (const Task& t : step->tasks) hash_into(h, t.body->hash());
  for (const ActorProgram& a : actors) {
    for (const Instruction& i : a.code) std::visit([&](const auto& x) { hash_into(h, hash_instruction(x)); }, i);
    for (const Slot& s : a.slots) hash_into(h, hash_of(s.arena, s.offset));
  }
  return h;
}

}  // namespace stretto

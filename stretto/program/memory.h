// The memory plan: persistent arenas, and activations at fixed offsets by liveness.
#pragma once
#include <unordered_map>

#include "stretto/program/program.h"
#include "stretto/stage/storage.h"

namespace stretto {

// Everything starts on 64 bytes.
inline u64 aligned(u64 bytes) { return (bytes + 63) / 64 * 64; }

// Fills in slots, arena sizes and addresses of all actors, whose code is complete and in order (order.h).
// With `params_of`, parameters lie where that program has them.
void plan_memory(Program&, const Program* params_of);

// Which instance of a value a task means, going through an actor's code in order: its microbatch's, or, of a gathered
// parameter, that of the newest gather that was awaited.
class Instances {
 public:
  explicit Instances(const Step& s) : s_(s) {}
  void awaited(const Await& a) {
    for (const Binding& b : s_.tasks[a.task].outputs) newest_[b.index] = a.number;
  }
  std::uint32_t read(const Run& r, std::uint32_t value) const {
    return gathered(s_, value) ? newest_.at(value) : r.microbatch;
  }
  std::uint32_t made(const Run& r, std::uint32_t number, std::uint32_t value) const {
    return gathered(s_, value) ? number : r.microbatch;
  }

 private:
  const Step& s_;
  std::unordered_map<std::uint32_t, std::uint32_t> newest_;
};

// When every instruction of an actor starts, counted in kernel calls, and when the last one ends.
std::vector<i64> instruction_clock(const Program&, const ActorProgram&);

}  // namespace stretto

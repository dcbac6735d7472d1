// A program's kernel calls, made ready for one rank. The ranks of an actor differ in where their blocks start, which is
// settled here, once.
//
//   PreparedProgram prepared = prepare(program, coordinates, device);
//   for (const PreparedCall& c : prepared.body_of(task).prepared) ...
#pragma once
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "stretto/ir/collective.h"
#include "stretto/kernels/device.h"
#include "stretto/program/program.h"

namespace stretto {

using BodyId = Id<struct BodyTag>;
using SharedCallId = Id<struct SharedCallTag>;  // a call that all ranks of a group make together

struct PreparedRef {
  std::optional<BufferId> buffer;  // none: a result that nobody reads
  i64 start = 0;
};
struct PreparedCall {
  NodeId node;
  std::vector<PreparedRef> in, out;
  std::optional<KeyId> key = {};
  std::variant<KernelId, SharedCallId> does;
};
struct PreparedBody {
  std::shared_ptr<const Calls> calls;
  TaskId first;  // the first of the tasks that share it
  IdVector<CallId, PreparedCall> prepared;
};

struct PreparedProgram {
  IdVector<TaskId, BodyId> body;
  IdVector<BodyId, PreparedBody> bodies;
  IdVector<SharedCallId, CollectiveShape> shared;
  PreparedBody& body_of(TaskId t) { return bodies[body[t]]; }
  const PreparedBody& body_of(TaskId t) const { return bodies[body[t]]; }
};

constexpr std::size_t most_operands = 48;  // of a kernel call, and as many results

PreparedProgram prepare(const Program&, const Coordinates&, Device&);

}  // namespace stretto

// What an actor does, one instruction after the other.
//
//   match(instruction,
//         [&](const Run& r) { execute(r); },
//         [&](const Send& s) { send(s.transfer); },
//         ...);
//
// A kind that is left out of a match does not compile: the compiler names every place that must handle a new one.
#pragma once
#include <cstdint>
#include <optional>
#include <ranges>
#include <utility>
#include <variant>

#include "stretto/base/match.h"
#include "stretto/fuse/calls.h"
#include "stretto/step/step.h"

namespace stretto {

using InstructionId = Id<struct InstructionTag>;  // a position in an actor's code
using SlotId = Id<struct SlotTag>;
using RouteId = Id<struct RouteTag>;
using TransferId = Id<struct TransferTag>;
using CollectiveId = Id<struct CollectiveTag>;  // one of an actor's collectives; the numbers say nothing about order

struct CallRange {
  CallId from, to;  // the first, and the one after the last
  bool operator==(const CallRange&) const = default;
};
inline auto ids(CallRange r) {
  return std::views::iota(r.from.value, r.to.value) | std::views::transform([](auto i) { return CallId(i); });
}

// Runs a task on a microbatch; its buffers are slots[args], slots[args + 1], ...
struct Run {
  TaskId task;
  MicrobatchId microbatch{0};
  SlotId args{0};
  bool overwrite = true;                // the first of the step for this task: accumulators are written, not added to
  std::optional<ActionId> action = {};  // of the actor's row; none: prologue and epilogue
  // Only these of its calls: the others are in instructions of their own, with the same task, microbatch and arguments.
  std::optional<CallRange> calls = {};
};
struct Send {  // never waits
  TransferId transfer;
};
struct Receive {  // waits for the message
  TransferId transfer;
};
// A run whose calls are all collectives: a sum of gradients, parameters gathered before they are needed, gradients
// reduced and scattered after the tasks that make them, or one collective of a task that computes. What they touch is
// theirs from Start to Await.
struct Start {  // never waits
  Run run;
  CollectiveId collective;
};
struct Await {
  CollectiveId collective;
  TaskId task;
};
using Instruction = std::variant<Run, Send, Receive, Start, Await>;

// What is most often asked of an instruction. Every kind has its answer here, so nobody needs std::get_if.

// The task that it runs or starts.
inline const Run* task_of(const Instruction& i) {
  using Found = const Run*;
  return match(
      i, [](const Run& r) -> Found { return &r; }, [](const Start& s) -> Found { return &s.run; },
      [](const OneOf<Send, Receive, Await> auto&) -> Found { return nullptr; });
}
inline Run* task_of(Instruction& i) { return const_cast<Run*>(task_of(std::as_const(i))); }
const Run* task_of(const Instruction&&) = delete;  // it would point into what is gone

// The task that it runs, and that is done when the next instruction begins.
inline const Run* run_of(const Instruction& i) {
  using Found = const Run*;
  return match(
      i, [](const Run& r) -> Found { return &r; },
      [](const OneOf<Send, Receive, Start, Await> auto&) -> Found { return nullptr; });
}
const Run* run_of(const Instruction&&) = delete;

inline std::optional<TransferId> sent_by(const Instruction& i) {
  using Found = std::optional<TransferId>;
  return match(
      i, [](const Send& s) -> Found { return s.transfer; },
      [](const OneOf<Run, Receive, Start, Await> auto&) -> Found { return std::nullopt; });
}

inline std::optional<TransferId> received_by(const Instruction& i) {
  using Found = std::optional<TransferId>;
  return match(
      i, [](const Receive& r) -> Found { return r.transfer; },
      [](const OneOf<Run, Send, Start, Await> auto&) -> Found { return std::nullopt; });
}

inline const Start* start_of(const Instruction& i) {
  using Found = const Start*;
  return match(
      i, [](const Start& s) -> Found { return &s; },
      [](const OneOf<Run, Send, Receive, Await> auto&) -> Found { return nullptr; });
}
const Start* start_of(const Instruction&&) = delete;

// Which of a body's calls it runs.
inline CallRange calls_of(const Run& r, const Calls& body) {
  return r.calls.value_or(CallRange{CallId(0), CallId(body.calls.size())});
}

// The task that begins with it: that it runs or starts, with the first of its calls.
inline const Run* begun_by(const Instruction& i) {
  const Run* r = task_of(i);
  return r && (!r->calls || r->calls->from == CallId(0)) ? r : nullptr;
}
const Run* begun_by(const Instruction&&) = delete;

}  // namespace stretto

// When every buffer in an actor's arena of activations is alive: what memory.h packs and account.h explains.
//
//   for (const LiveBuffer& b : lifetimes(program, actor).buffers)
//     fmt::print("{} bytes from {} to {}\n", b.bytes, b.first, b.last);
#pragma once
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "stretto/base/pack.h"
#include "stretto/program/program.h"

namespace stretto {

struct BufferUse {  // an argument of a Run or a Start
  InstructionId instruction;
  BufferId buffer;
};
struct MessageEnd {
  TransferId transfer;
  bool sending = false;
};
using LiveId = Id<struct LiveTag>;
struct LiveBuffer {
  u64 bytes = 0;
  i64 first = 0, last = 0;            // kernel calls, both included
  std::optional<i64> received = {};   // of a message: until when it is under way
  std::optional<ValueId> value = {};  // none: a temporary of one run
  MicrobatchId microbatch{0};
  InstructionId made, read;               // the first and the last that touch it
  std::optional<InstructionId> run = {};  // the last that runs or starts a task with it
};
struct Lifetimes {
  IdVector<InstructionId, i64> clock;  // when an instruction begins, in kernel calls; the last entry is the end
  IdVector<LiveId, LiveBuffer> buffers;
  // Who uses them, in the order of the code. There are very many uses, so that they are in lists of their own.
  std::vector<std::pair<LiveId, BufferUse>> uses;
  std::vector<std::pair<LiveId, MessageEnd>> ends;
  // Results that are made in another actor's memory, and the transfer that announces each.
  std::vector<std::pair<BufferUse, TransferId>> elsewhere;
  // Whose arguments each instruction uses: its own, or those of the first part of a run in parts.
  IdVector<InstructionId, InstructionId> home;
};

// The actor's code must be complete, and its order settled (order.h).
Lifetimes lifetimes(const Program&, ActorId);
// Far fewer: without the temporaries of runs that are not in parts, and not by whom they are used.
IdVector<LiveId, Lifetime> lives_of_values(const Program&, ActorId);

}  // namespace stretto

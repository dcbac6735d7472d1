// When every buffer in an actor's arena of activations is alive: what memory.h packs and account.h explains.
//
//   for (const LiveBuffer& b : lifetimes(program, actor).buffers)
//     fmt::print("{} bytes from {} to {}\n", b.bytes, b.first, b.last);
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "stretto/base/pack.h"
#include "stretto/program/program.h"

namespace stretto {

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
struct SlotInTurn {
  std::size_t turn;  // its position
  SlotId slot;       // among the turn's own
};
struct Lifetimes {
  IdVector<InstructionId, i64> clock;  // when an instruction begins, in kernel calls; the last entry is the end
  IdVector<LiveId, LiveBuffer> buffers;
  // Who uses them: a turn's code touches some buffers, each in some of the turn's slots.
  IdVector<TurnCodeId, std::vector<std::vector<SlotId>>> slots;
  std::vector<LiveId> touched;             // by all turns, one after the other
  std::vector<std::size_t> first_touched;  // of each turn, in that list
  std::vector<std::pair<LiveId, MessageEnd>> ends;
  // Results that are made in another actor's memory, and the transfer that announces each.
  std::vector<std::pair<SlotInTurn, TransferId>> elsewhere;
};

// Which temporaries are among the buffers: always those of runs in parts, between which other runs come.
enum class Temporaries : std::uint8_t { all, of_parts };

// The actor's code must be complete, and its order settled (order.h). Slots of the turns' codes must be numbered, if
// anybody looks at them.
Lifetimes lifetimes(const Program&, ActorId, Temporaries = Temporaries::all);

}  // namespace stretto

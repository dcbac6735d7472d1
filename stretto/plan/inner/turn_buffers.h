// Which buffers a turn touches, and when: counted in calls from its beginning, in the order that was found for it.
//
//   const TurnBuffers b = turn_buffers(work, order, key, slots, options);
//   for (const TouchedValue& v : b.values) lives[v.slot].last = begin + v.last;
#pragma once
#include <map>
#include <optional>
#include <vector>

#include "stretto/base/pack.h"
#include "stretto/plan/arranged.h"

namespace stretto {

// Values of a piece and a microbatch, numbered: what it reads of the piece before, what it is given for that, its own.
class PieceSlots {
 public:
  explicit PieceSlots(const PieceWork&);
  // Where a buffer is, in which of its neighbours; not of temporaries and of parameters.
  struct Slot {
    int piece = 0;  // -1: of the piece before, 1: of the next one
    std::uint32_t number = 0;
  };
  Slot of(const PieceBuffer&, Part reader, bool chained, bool first) const;
  std::uint32_t count() const { return count_; }
  // Of a piece at an end of its stage: what a message brings.
  static bool comes(std::uint32_t number, bool forward) { return number / handed_on == (forward ? 0 : 2); }

 private:
  static constexpr std::uint32_t handed_on = 4;  // values, at most
  std::map<Part, std::uint32_t> base_;           // of what each makes
  std::uint32_t count_ = 0;
};

struct TouchedValue {
  enum class Of : std::uint8_t { action, left, scattered } of = Of::action;  // whose microbatch it is
  std::size_t which = 0;  // action of the key, or what the turn before has left
  PieceAt at;             // of the stage before or after where the piece is none of this one
  std::uint32_t slot = 0;
  u64 bytes = 0;
  i64 first = 0, last = 0;
};
struct TouchedParam {
  PieceAt at;
  std::uint32_t number = 0;
  u64 bytes = 0;
  i64 last = 0;
};
struct TurnBuffers {
  std::vector<TouchedValue> values = {};
  std::vector<Lifetime> temporaries = {}, in_parts = {};  // of whole runs, and of runs that others come between
  u64 block = 0;                                          // the largest of whole runs
  struct Gather {
    PieceAt at;
    i64 start = 0;
    std::vector<TouchedParam> touched = {};
  };
  std::vector<TouchedParam> gathered_before = {};
  std::vector<Gather> gathers = {};
  std::vector<std::optional<i64>> received = {}, sent = {};  // per action
  struct Summed {
    u64 bytes = 0;
    i64 first = 0;
  };
  std::vector<Summed> summed = {};           // scattered once a step: they stay until it ends
  std::optional<std::size_t> scatters = {};  // the action whose gradients are on their way at its end
  double buffers = 0;                        // of bodies, counted at every run
  i64 calls = 0;
};
using SlotsOfStages = IdVector<StageId, std::vector<const PieceSlots*>>;
TurnBuffers turn_buffers(const TurnKey&, const TurnWork&, const TurnOrder&, const StagePieces&, const SlotsOfStages&,
                         const TurnOptions&);

}  // namespace stretto

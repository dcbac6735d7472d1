// Dense tables over a schedule's actions, for everything that must stay linear in their number.
//
//   ActionIndex ix(schedule);                                   // needs ActionIndex::fits(schedule)
//   if (const ActionNumber from = ix.producer(7)) ...          // whose output action 7 takes
//
// Actions are numbered through all rows, row by row: on one actor a smaller number stands earlier.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "stretto/schedule/schedule.h"

namespace stretto {

// A place for the number of an action, which may be empty: `if (n)`, `*n`. Half as large as an optional.
class ActionNumber {
 public:
  constexpr ActionNumber() = default;
  constexpr ActionNumber(std::uint32_t number) : next_(number + 1) {}
  constexpr explicit operator bool() const { return next_ > 0; }
  constexpr std::uint32_t operator*() const { return next_ - 1; }
  constexpr bool operator==(const ActionNumber&) const = default;

 private:
  std::uint32_t next_ = 0;  // 0: empty
};

class ActionIndex {
 public:
  // Whether the shape is sound and the tables stay in proportion to the actions. A schedule that does not fit lacks
  // most of its actions.
  static bool fits(const Schedule&);
  explicit ActionIndex(const Schedule&);

  std::uint32_t size() const { return actions.size(); }
  std::size_t keys() const { return first_.size(); }
  bool known(const Action& a) const {
    return a.pipe.value < pipes_ && a.stage.value < stages_ && a.microbatch.value < microbatches_ &&
           a.segment < segments_ && a.phase <= Phase::R;
  }
  // A number for (pipe, stage, microbatch, segment), in this order; of a known action only.
  std::size_t key(const Action& a) const {
    return (stage_key(a) * microbatches_ + a.microbatch.value) * segments_ + a.segment;
  }
  // The same of (pipe, stage).
  std::size_t stage_key(const Action& a) const { return a.pipe.value * stages_ + a.stage.value; }
  std::size_t stage_stride() const { return microbatches_ * segments_; }
  // The first action of that phase and key.
  ActionNumber first(std::size_t key, Phase p) const { return first_[key][p]; }
  // The first action that makes the gradient of the stage's inputs: its I, or else its B.
  ActionNumber gradient(std::size_t key) const {
    return first(key, Phase::I) ? first(key, Phase::I) : first(key, Phase::B);
  }
  // Whether a known action stands on another actor than the one that holds its stage.
  bool misplaced(std::uint32_t i) const { return holder_[stage_key(actions[i])] != actor[i]; }
  int position(std::uint32_t i) const { return i - begin(actor[i]); }
  // The numbers of an actor's actions.
  std::uint32_t begin(ActorId a) const { return row_begin_[a.value]; }
  std::uint32_t end(ActorId a) const { return row_begin_[a.value + 1u]; }
  std::size_t actors() const { return row_begin_.size() - 1; }

  // The action of the neighbouring stage whose output action i takes (F: the stage before; I and B: the one after).
  ActionNumber producer(std::uint32_t i) const;

  std::vector<Action> actions;
  std::vector<ActorId> actor;       // of an action
  std::vector<std::uint32_t> item;  // likewise: members of an overlap group share it

 private:
  std::size_t pipes_ = 0, stages_ = 0, microbatches_ = 0, segments_ = 0;
  std::vector<PerPhase<ActionNumber>> first_;
  std::vector<ActorId> holder_;           // by stage_key
  std::vector<std::uint32_t> row_begin_;  // per actor, and the end
};

// The pipe a microbatch goes through: the down pipe takes the first half.
inline PipeId pipe_of(const Schedule& s, MicrobatchId m) {
  return s.pipes() > 1 && std::cmp_greater_equal(m.value, s.microbatches / 2) ? up_pipe : down_pipe;
}

}  // namespace stretto

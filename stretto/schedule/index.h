// Dense tables over a schedule's actions, for everything that must stay linear in their number.
//
//   ActionIndex ix(schedule);                                   // needs ActionIndex::fits(schedule)
//   std::uint32_t from = ix.producer(7);                        // whose output action 7 takes, or ActionIndex::none
//
// Actions are numbered through all rows, row by row: on one actor a smaller number stands earlier.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "stretto/schedule/schedule.h"

namespace stretto {

class ActionIndex {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  // Whether the shape is sound and the tables stay in proportion to the actions. A schedule that does not fit lacks
  // most of its actions.
  static bool fits(const Schedule&);
  explicit ActionIndex(const Schedule&);

  std::size_t size() const { return actions.size(); }
  std::size_t keys() const { return first_.size(); }
  bool known(const Action& a) const {
    return int(a.pipe) < pipes_ && int(a.stage) < stages_ && std::int64_t(a.microbatch) < microbatches_ &&
           int(a.piece) < pieces_ && a.phase <= Phase::R;
  }
  // A number for (pipe, stage, microbatch, piece), in this order; of a known action only.
  std::size_t key(const Action& a) const {
    return ((std::size_t(a.pipe) * std::size_t(stages_) + a.stage) * std::size_t(microbatches_) + a.microbatch) *
               std::size_t(pieces_) +
           a.piece;
  }
  std::size_t stage_stride() const { return std::size_t(microbatches_) * std::size_t(pieces_); }
  // The first action of that phase and key.
  std::uint32_t first(std::size_t key, Phase p) const { return first_[key][std::size_t(p)]; }
  // The first action that makes the gradient of the stage's inputs: its I, or else its B.
  std::uint32_t gradient(std::size_t key) const {
    return first(key, Phase::I) != none ? first(key, Phase::I) : first(key, Phase::B);
  }
  // Whether a known action stands on another actor than the one that holds its stage.
  bool misplaced(std::uint32_t i) const {
    const Action& a = actions[i];
    return holder_[std::size_t(a.pipe) * std::size_t(stages_) + a.stage] != std::int64_t(actor[i]);
  }
  int position(std::uint32_t i) const { return int(i - row_begin[actor[i]]); }

  // The action of the neighbouring stage whose output action i takes (F: the stage before; I and B: the one behind).
  std::uint32_t producer(std::uint32_t i) const;

  std::vector<Action> actions;
  std::vector<std::uint32_t> actor, item;  // of an action; members of an overlap group share the item
  std::vector<std::uint32_t> row_begin;    // per actor, and the end

 private:
  int pipes_ = 0, stages_ = 0, microbatches_ = 0, pieces_ = 0;
  std::vector<std::array<std::uint32_t, 5>> first_;
  std::vector<int> holder_;
};

// The pipe a microbatch goes through: the down pipe takes the first half.
inline int pipe_of(const Schedule& s, std::int64_t microbatch) {
  return s.pipes() > 1 && microbatch >= s.microbatches / 2 ? 1 : 0;
}

}  // namespace stretto

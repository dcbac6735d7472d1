// An actor's instructions, as turns: the code of turns that are alike is there once.
//
//   for (const Instruction& i : actor.code) ...                    // written out, one after the other
//   for (const Turn& t : actor.code.turns())
//     for (const Instruction& i : actor.code.kind(t).instructions) ...      // with numbers of the turn's own
#pragma once
#include <cstddef>
#include <iterator>
#include <vector>

#include "stretto/program/turn.h"

namespace stretto {

using TurnCodeId = Id<struct TurnCodeTag>;

// Where a turn stands, and where what its numbers stand for begins in the code's lists.
struct Turn {
  TurnCodeId code;
  InstructionId first;  // of its instructions
  std::uint32_t microbatches = 0, actions = 0, transfers = 0, collectives = 0;
  SlotId slots{0};  // the first that it uses
};

class Code {
 public:
  Code() = default;
  // Nothing in it is known to repeat.
  explicit Code(const std::vector<Instruction>&);

  TurnCodeId add(TurnCode c) { return codes_.push_back(std::move(c)); }
  void add(TurnCodeId, const TurnNumbers&);  // a turn, at the end
  void push_back(Instruction);               // to a turn at the end that nothing else is like
  void close() { open_ = false; }            // what is pushed next begins another turn

  const std::vector<Turn>& turns() const { return turns_; }
  const TurnCode& kind(const Turn& t) const { return codes_[t.code]; }
  IdVector<TurnCodeId, TurnCode>& kinds() { return codes_; }
  const IdVector<TurnCodeId, TurnCode>& kinds() const { return codes_; }
  void put_slots(std::size_t turn, SlotId first) { turns_[turn].slots = first; }

  // Of one turn.
  std::size_t size(const Turn& t) const { return kind(t).instructions.size(); }
  Instruction at(const Turn&, std::size_t) const;
  std::vector<Instruction> written_out(const Turn&) const;
  TurnNumbers numbers(const Turn&) const;
  MicrobatchId microbatch(const Turn& t, MicrobatchId m) const {
    return numbers_.microbatches[t.microbatches + m.value];
  }
  ActionId action(const Turn& t, ActionId a) const { return numbers_.actions[t.actions + a.value]; }
  TransferId transfer(const Turn& t, TransferId x) const { return numbers_.transfers[t.transfers + x.value]; }
  CollectiveId collective(const Turn& t, CollectiveId c) const { return numbers_.collectives[t.collectives + c.value]; }

  // Of all, as one list.
  class Iterator {
   public:
    using iterator_concept = std::forward_iterator_tag;
    using iterator_category = std::input_iterator_tag;
    using value_type = Instruction;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = Instruction;
    Iterator() = default;
    Iterator(const Code* code, std::size_t turn) : code_(code), turn_(turn) {}
    Instruction operator*() const { return code_->at(code_->turns_[turn_], at_); }
    Iterator& operator++() {
      if (++at_ == code_->size(code_->turns_[turn_])) ++turn_, at_ = 0;
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator&) const = default;
    // Where it stands; not at the end.
    InstructionId id() const { return InstructionId(code_->turns_[turn_].first.value + at_); }
    const Turn& turn() const { return code_->turns_[turn_]; }
    std::size_t in_turn() const { return at_; }

   private:
    const Code* code_ = nullptr;
    std::size_t turn_ = 0, at_ = 0;
  };
  using iterator = Iterator;
  using const_iterator = Iterator;
  using value_type = Instruction;
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, turns_.size()}; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool has(InstructionId i) const { return i.value < size_; }
  auto ids() const { return ids_until<InstructionId>(size_); }
  InstructionId next_id() const { return InstructionId(size_); }
  Instruction operator[](InstructionId) const;
  std::size_t turn_of(InstructionId) const;  // its position among the turns
  std::vector<Instruction> written_out() const { return {begin(), end()}; }

 private:
  void begin_turn(TurnCodeId);

  IdVector<TurnCodeId, TurnCode> codes_;
  std::vector<Turn> turns_;
  TurnNumbers numbers_;  // of all turns, one after the other
  std::size_t size_ = 0;
  bool open_ = false;  // the last turn was made by push_back
};

// Where numbers are found in longer lists of them, so that others like them can be picked from lists like those.
struct NumbersWithin {
  std::vector<std::uint32_t> microbatches, actions, transfers, collectives;
};
NumbersWithin places_of(const TurnNumbers&, const TurnNumbers& in);
TurnNumbers picked(const NumbersWithin&, const TurnNumbers& from);

// A code for instructions as they are, and what its numbers stand for: numbered as they appear.
std::pair<TurnCode, TurnNumbers> numbered(std::span<const Instruction>);

}  // namespace stretto

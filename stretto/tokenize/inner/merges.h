// Byte pair encoding of one word: neighbouring tokens are merged, those of the lowest rank first and from the left,
// until no pair is in the table.
//
//   Merges merges;
//   merges.add(a, b, 0, ab);              // rank 0: a b -> ab
//   std::vector<std::int32_t> ids{a, b, a};
//   merges.apply(ids, 0);                 // {ab, a}
#pragma once
#include <compare>
#include <cstdint>
#include <vector>

namespace stretto {

class Merges {
 public:
  // When a pair's turn comes. That of a pair which is not in the table never does: it stands after all others.
  class Turn {
   public:
    Turn() = default;  // never
    explicit Turn(std::uint32_t rank) : rank_(rank) {}
    bool comes() const { return *this != Turn(); }
    auto operator<=>(const Turn&) const = default;

   private:
    std::uint32_t rank_ = 0xFFFFFFFFu;
  };
  struct Merge {
    Turn turn;
    std::int32_t id = 0;
  };

  void reserve(std::size_t merges);
  void add(std::int32_t left, std::int32_t right, std::uint32_t rank, std::int32_t id);  // a pair again: the last wins
  Merge find(std::int32_t left, std::int32_t right) const;
  void apply(std::vector<std::int32_t>& ids, std::size_t first) const;  // to ids[first] and all after it
  std::size_t size() const { return count_; }

 private:
  struct Slot {
    std::uint64_t key = 0;
    Merge merge;  // whose turn never comes: empty
  };
  std::size_t slot_of(std::uint64_t key) const;
  void grow(std::size_t slots);
  void apply_short(std::vector<std::int32_t>& ids, std::size_t first) const;
  void apply_long(std::vector<std::int32_t>& ids, std::size_t first) const;

  std::vector<Slot> slots_;  // a power of two, at most half full
  std::size_t count_ = 0;
};

}  // namespace stretto

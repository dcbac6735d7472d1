// Byte pair encoding of one word: neighbouring tokens are merged, those of the lowest rank first and from the left,
// until no pair is in the table.
//
//   Merges merges;
//   merges.add(a, b, 0, ab);              // rank 0: a b -> ab
//   std::vector<std::int32_t> ids{a, b, a};
//   merges.apply(ids, 0);                 // {ab, a}
#pragma once
#include <cstdint>
#include <vector>

namespace stretto {

class Merges {
 public:
  struct Merge {
    std::uint32_t rank = none;
    std::int32_t id = -1;
  };
  static constexpr std::uint32_t none = 0xFFFFFFFFu;

  void reserve(std::size_t merges);
  void add(std::int32_t left, std::int32_t right, std::uint32_t rank, std::int32_t id);  // a pair again: the last wins
  Merge find(std::int32_t left, std::int32_t right) const;
  void apply(std::vector<std::int32_t>& ids, std::size_t first) const;  // to ids[first] and all after it
  std::size_t size() const { return count_; }

 private:
  struct Slot {
    std::uint64_t key = 0;
    Merge merge;  // rank none: empty
  };
  std::size_t slot_of(std::uint64_t key) const;
  void grow(std::size_t slots);
  void apply_short(std::vector<std::int32_t>& ids, std::size_t first) const;
  void apply_long(std::vector<std::int32_t>& ids, std::size_t first) const;

  std::vector<Slot> slots_;  // a power of two, at most half full
  std::size_t count_ = 0;
};

}  // namespace stretto

// The tokens of words met before. When it is full it forgets everything: in text, the words that matter come back soon.
//
//   WordCache cache;
//   if (!cache.find(word, ids)) { encode(word, ids); cache.add(word, ...); }
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/base/hash.h"

namespace stretto {

class WordCache {
 public:
  WordCache() : slots_(slot_count) {}

  bool find(std::string_view word, std::vector<std::int32_t>& append_to) {
    if (word.size() > longest_kept) return false;
    last_ = slot_of(word);
    const Slot& s = slots_[last_];
    if (s.size == 0) return false;
    append_to.insert(append_to.end(), ids_.begin() + s.first_id, ids_.begin() + s.first_id + s.ids);
    return true;
  }

  // Right after find() did not find this word.
  void add(std::string_view word, std::span<const std::int32_t> ids) {
    if (word.size() > longest_kept) return;
    if (count_ == most_kept) {
      slots_.assign(slot_count, Slot{});
      text_.clear();
      ids_.clear();
      count_ = 0;
      last_ = slot_of(word);
    }
    slots_[last_] = {hash_, std::uint32_t(text_.size()), std::uint32_t(ids_.size()), std::uint16_t(word.size()),
                     std::uint16_t(ids.size())};
    text_ += word;
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    ++count_;
  }

 private:
  static constexpr std::size_t slot_count = 1 << 17, most_kept = slot_count / 2, longest_kept = 64;
  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t first_byte = 0, first_id = 0;
    std::uint16_t size = 0, ids = 0;  // size 0: empty
  };

  std::size_t slot_of(std::string_view word) {
    hash_ = hash_bytes(word.data(), word.size());
    for (std::size_t at = hash_ & (slot_count - 1);; at = (at + 1) & (slot_count - 1)) {
      const Slot& s = slots_[at];
      if (s.size == 0 || (s.hash == hash_ && std::string_view(text_).substr(s.first_byte, s.size) == word)) return at;
    }
  }

  std::vector<Slot> slots_;
  std::string text_;
  std::vector<std::int32_t> ids_;
  std::size_t count_ = 0, last_ = 0;
  std::uint64_t hash_ = 0;
};

}  // namespace stretto

// The copies that a message consists of, where sender and receiver reach each other's memory.
//
//   Copies copies;
//   Copies::Range r = copies.add(transfer.extents, from, to);     // neighbours become one
//   copies.run(r);
#pragma once
#include <cstring>
#include <span>
#include <vector>

#include "stretto/program/program.h"

namespace stretto {

class Copies {
 public:
  struct Range {
    std::uint32_t first = 0, count = 0;
  };
  struct Copy {
    std::byte* to;
    const std::byte* from;
    u64 bytes;
  };
  // `from` and `to` give the address of a slot on the sender and on the receiver.
  template <class From, class To>
  Range add(std::span<const Extent> extents, const From& from, const To& to) {
    Range r;
    r.first = all_.size();
    for (const Extent& e : extents) {
      const Copy c{to(e.to), from(e.from), e.bytes};
      if (r.count > 0 && all_.back().to + all_.back().bytes == c.to && all_.back().from + all_.back().bytes == c.from) {
        all_.back().bytes += c.bytes;
      } else {
        all_.push_back(c);
        ++r.count;
      }
    }
    return r;
  }
  std::span<const Copy> all(Range r) const { return std::span(all_).subspan(r.first, r.count); }
  void run(Range r) const {
    for (const Copy& c : all(r)) std::memcpy(c.to, c.from, c.bytes);
  }

 private:
  std::vector<Copy> all_;
};

}  // namespace stretto

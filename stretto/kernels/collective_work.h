// The memory traffic of one collective between members whose operands and results this process can reach, cut into
// chunks that anybody may do, in any order, at the same time: no element's bits depend on who does it or on the
// cutting.
//
//   CollectiveWork work(shape);
//   for (std::uint32_t c = 0; c < work.chunks(); ++c) work.run(c, operands, results);     // one pointer per member
#pragma once
#include <cstddef>
#include <cstdint>

#include "stretto/base/hash.h"
#include "stretto/ir/collective.h"

namespace stretto {

// The tree over n members' contiguous elements; `out` may be one of `in`.
using DenseSum = void (*)(int n, const std::byte* const* in, i64 count, std::byte* out);
DenseSum dense_sum_for(DType, Reduce);  // Error: sums of a dtype that nothing is computed in

class CollectiveWork {
 public:
  explicit CollectiveWork(const CollectiveShape&);  // Error: sums of a dtype that nothing is computed in
  const CollectiveShape& shape() const { return shape_; }
  std::uint32_t chunks() const { return chunks_; }
  u64 bytes() const { return bytes_; }                  // read and written by all chunks together
  bool small() const { return bytes_ <= small_bytes; }  // takes no longer than waking somebody who helps
  // counts: of rows, as CollectiveGroup::start gets them.
  void run(std::uint32_t chunk, const std::byte* const* in, std::byte* const* out,
           const std::int32_t* counts = nullptr) const;

 private:
  static constexpr u64 small_bytes = 128 << 10;
  // What a chunk is part of: a box that is the sum over some members' operands (or one member's) and goes to some
  // members' results.
  struct Box {
    int first_source = 0, sources = 1, first_target = 0, targets = 1;
    i64 in = 0, out = 0;  // where it begins, in elements
    i64 valid = 0;        // elements that are not padding
  };
  using Sum = void (*)(const CollectiveWork&, const Box&, i64 first, i64 last, const std::byte* const* in,
                       std::byte* const* out);
  template <class T, class Add>
  static void sum(const CollectiveWork&, const Box&, i64 first, i64 last, const std::byte* const* in,
                  std::byte* const* out);
  static Sum sum_for(DType, Reduce);
  Box box(int number) const;
  void run_rows(int target, i64 first, i64 last, const std::byte* const* in, std::byte* const* out,
                const std::int32_t* counts) const;
  void copy(const Box&, i64 first, i64 last, const std::byte* const* in, std::byte* const* out) const;
  void clear(const Box&, i64 first, i64 last, std::byte* const* out) const;

  CollectiveShape shape_;
  std::size_t element_ = 4;  // bytes
  i64 length_ = 0;           // of a chunk, in elements
  std::uint32_t chunks_ = 0, per_box_ = 0;
  u64 bytes_ = 0;
  i64 in_stride_ = 1, out_stride_ = 1;  // innermost
  Sum sum_ = nullptr;
};

}  // namespace stretto

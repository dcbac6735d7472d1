// Values of tests: elements of one type in 64-byte aligned memory, read and written as doubles.
//
//   Buffer x(graph, type);   x.set(3, 0.5);   x.at(3)
#pragma once
#include <vector>

#include "stretto/ir/graph.h"
#include "stretto/kernels/kernel.h"

namespace stretto::test {

class Buffer {
 public:
  Buffer() = default;
  Buffer(DType type, i64 elements) : dtype_(type), count_(elements), chunks_(std::size_t(elements) / 8 + 2) {}
  Buffer(const Graph& g, const Type& t) : Buffer(t.dtype, g.elements(t)) {}

  DType dtype() const { return dtype_; }
  i64 count() const { return count_; }
  std::byte* data() { return chunks_[0].bytes; }
  const std::byte* data() const { return chunks_[0].bytes; }
  std::byte* element(i64 i) { return data() + i * i64(size_of(dtype_)); }
  double at(i64 i) const;
  void set(i64 i, double value);  // rounded to the type
  u64 bits(i64 i) const;

 private:
  struct alignas(64) Chunk {
    std::byte bytes[64] = {};
  };
  DType dtype_ = f32;
  i64 count_ = 0;
  std::vector<Chunk> chunks_;
};

// Calls f(index) for every index of the sizes, the last dim fastest.
void for_each_index(const std::vector<i64>& sizes, const std::function<void(const std::vector<i64>&)>& f);
i64 offset_in(const View&, const std::vector<i64>& index);  // in elements
bool is_padding(const View&, const std::vector<i64>& index);

// The elements of a view, in order, as a buffer of their own.
Buffer gathered(const View&, const std::byte* first);

}  // namespace stretto::test

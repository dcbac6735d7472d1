// Nests of loops over strided arrays, for kernels that are not pointwise. Up to twelve arrays step together.
//
//   Nest nest;
//   for (DimId d : out.dims) add_loop(nest, out.size(d), {x.stride(d), out.stride(d)});
//   run_nest(nest, [&](Steps at) { o[at[1]] = a[at[0]]; });
#pragma once
#include <array>

#include "stretto/base/error.h"
#include "stretto/base/id.h"

namespace stretto {

using Steps = std::array<i64, 12>;  // in elements, one per array
struct Loop {
  i64 size = 1;
  Steps step{};
};
// Outermost first. Kernels copy nests while they run: the loops lie in the value itself, so that nothing is allocated.
class Nest {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  const Loop& operator[](std::size_t i) const { return loops_[i]; }
  Loop& back() { return loops_[size_ - 1]; }
  void push_back(const Loop& l) {
    STRETTO_ASSERT(size_ < loops_.size(), "more dims than a nest has loops");
    loops_[size_++] = l;
  }
  void pop_back() { --size_; }
  const Loop* begin() const { return loops_.data(); }
  const Loop* end() const { return loops_.data() + size_; }

 private:
  std::array<Loop, 12> loops_{};
  std::size_t size_ = 0;
};

// Appends a loop; loops of one turn vanish, and two that all arrays step through evenly become one.
inline void add_loop(Nest& nest, i64 size, Steps step) {
  if (size == 1) return;
  if (!nest.empty()) {
    Loop& outer = nest.back();
    bool even = true;
    for (std::size_t k = 0; k < step.size(); ++k) even = even && outer.step[k] == step[k] * size;
    if (even) {
      outer = {outer.size * size, step};
      return;
    }
  }
  nest.push_back({size, step});
}

// Takes the innermost loop off; a nest without loops has one of a single turn.
inline Loop take_innermost(Nest& nest) {
  if (nest.empty()) return {};
  const Loop last = nest.back();
  nest.pop_back();
  return last;
}

inline i64 turns(const Nest& nest) {
  i64 n = 1;
  for (const Loop& l : nest) n *= l.size;
  return n;
}

template <class F>
void run_nest(const Nest& nest, const F& body, std::size_t depth = 0, Steps at = {}) {
  if (depth == nest.size()) return body(at);
  const Loop& loop = nest[depth];
  for (i64 i = 0; i < loop.size; ++i) {
    run_nest(nest, body, depth + 1, at);
    for (std::size_t k = 0; k < at.size(); ++k) at[k] += loop.step[k];
  }
}

}  // namespace stretto

// One collective with every member's memory, and what must be in all of it afterwards, computed element by element.
//
//   Plain p(shape, seed);                     // random operands; results hold a mark that must stay where none belongs
//   run(p.in(member), p.out(member)) ...;     // by whatever is tested
//   p.check();
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "stretto/comm/collective.h"
#include "support/buffer.h"

namespace stretto::test {

inline i64 extent(const CollectiveShape& s, const std::vector<i64>& strides, i64 step) {
  i64 last = step * (s.members - 1);
  for (std::size_t d = 0; d < s.sizes.size(); ++d) last += std::max<i64>(0, s.sizes[d] - 1) * strides[d];
  return last + 1;
}

class Plain {
 public:
  // In place: one memory for operand and result, which lie where CollectiveGroup says.
  Plain(const CollectiveShape& s, unsigned seed, bool in_place = false) : shape(s), in_place_(in_place) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> size(-3, 3), sign(-1, 1);
    const i64 inner = extent(s, s.in_strides, s.in_step), outer = extent(s, s.out_strides, s.out_step);
    for (int m = 0; m < s.members; ++m) {
      in_.emplace_back(s.dtype, in_place ? std::max(inner, outer) : inner);
      for (i64 i = 0; i < in_.back().count(); ++i)  // of many sizes, so that the order of addition is seen
        in_.back().set(i, s.dtype == i32 ? std::floor(1000 * sign(random)) : sign(random) * std::pow(10, size(random)));
      if (!in_place) out_.emplace_back(s.dtype, outer);
      if (!in_place)
        for (i64 i = 0; i < outer; ++i) out_.back().set(i, mark);
    }
    want_ = in_place ? in_ : out_;
    const std::vector<Buffer> operands = in_;
    for (int target = 0; target < s.members; ++target)
      for (int from = 0; from < (s.sums() ? 1 : s.members); ++from) expect(operands, target, from);
  }

  const std::byte* in(int m) {
    const i64 at = in_place_ && shape.kind == CollectiveKind::gather ? m * shape.out_step : 0;
    return in_[std::size_t(m)].element(at);
  }
  std::byte* out(int m) {
    if (!in_place_) return out_[std::size_t(m)].data();
    return in_[std::size_t(m)].element(shape.kind == CollectiveKind::scatter ? m * shape.in_step : 0);
  }
  bool right() const {
    const std::vector<Buffer>& is = in_place_ ? in_ : out_;
    for (std::size_t m = 0; m < is.size(); ++m)
      for (i64 i = 0; i < is[m].count(); ++i)
        if (is[m].bits(i) != want_[m].bits(i)) {
          ADD_FAILURE() << shape.str() << ": member " << m << " has " << is[m].at(i) << " at " << i << ", not "
                        << want_[m].at(i);
          return false;
        }
    return true;
  }

  CollectiveShape shape;

 private:
  static constexpr double mark = 12345;

  void expect(const std::vector<Buffer>& operands, int target, int from) {
    const CollectiveShape& s = shape;
    const i64 in_base =
        s.kind == CollectiveKind::scatter || s.kind == CollectiveKind::exchange ? target * s.in_step : 0;
    const i64 out_base = s.sums() ? 0 : from * s.out_step;
    const i64 in_shift = in_place_ && s.kind == CollectiveKind::gather ? from * s.out_step : 0;
    const i64 out_shift = in_place_ && s.kind == CollectiveKind::scatter ? target * s.in_step : 0;
    const int padded = s.kind == CollectiveKind::gather ? from : target;
    Buffer& to = want_[std::size_t(target)];
    i64 number = 0;
    for_each_index(s.sizes, [&](const std::vector<i64>& index) {
      i64 in = in_base + in_shift, out = out_base + out_shift;
      for (std::size_t d = 0; d < index.size(); ++d) {
        in += index[d] * s.in_strides[d];
        out += index[d] * s.out_strides[d];
      }
      const bool padding = s.valid >= 0 && padded * s.box() + number >= s.valid;
      ++number;
      if (padding && !s.sums()) return;
      to.set(out, padding ? 0 : s.sums() ? tree(operands, in, 0, s.members) : operands[std::size_t(from)].at(in));
    });
  }
  // Left: the largest power of two below the number of operands.
  double tree(const std::vector<Buffer>& operands, i64 at, int first, int n) const {
    if (n == 1) return operands[std::size_t(first)].at(at);
    const int half = 1 << int(std::ceil(std::log2(n)) - 1);
    const double a = tree(operands, at, first, half), b = tree(operands, at, first + half, n - half);
    if (shape.how == Reduce::max) return std::max(a, b);
    return shape.dtype == f32 ? double(float(a) + float(b)) : a + b;
  }

  bool in_place_;
  std::vector<Buffer> in_, out_, want_;
};

// Dense boxes of these sizes, the members' one behind the other.
inline CollectiveShape dense(CollectiveKind kind, DType dtype, int members, std::vector<i64> sizes,
                             Reduce how = Reduce::sum) {
  CollectiveShape s{.kind = kind, .dtype = dtype, .how = how, .members = members, .axes = {"data"}, .sizes = sizes};
  i64 stride = 1;
  for (std::size_t d = sizes.size(); d-- > 0; stride *= sizes[d]) s.in_strides.insert(s.in_strides.begin(), stride);
  s.out_strides = s.in_strides;
  if (kind == CollectiveKind::scatter || kind == CollectiveKind::exchange) s.in_step = stride;
  if (kind == CollectiveKind::gather || kind == CollectiveKind::exchange) s.out_step = stride;
  return s;
}

inline constexpr CollectiveKind all_kinds[] = {CollectiveKind::reduce, CollectiveKind::gather, CollectiveKind::scatter,
                                               CollectiveKind::exchange};

}  // namespace stretto::test

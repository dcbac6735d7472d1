// One collective with every member's memory, and what must be in all of it afterwards, computed element by element.
//
//   Plain p(shape, seed);                     // random operands; results hold a mark that must stay where none belongs
//   run(p.in(member), p.out(member)) ...;     // by whatever is tested
//   p.check();
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
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
  // All memory of a member, for what works on a copy of it.
  Buffer& operand(int m) { return in_[std::size_t(m)]; }
  Buffer& result(int m) { return in_place_ ? in_[std::size_t(m)] : out_[std::size_t(m)]; }

  bool right() const {
    for (int m = 0; m < shape.members; ++m)
      if (!right(m)) return false;
    return true;
  }
  bool right(int member) const {
    const Buffer &is = (in_place_ ? in_ : out_)[std::size_t(member)], &want = want_[std::size_t(member)];
    for (i64 i = 0; i < is.count(); ++i)
      if (is.bits(i) != want.bits(i)) {
        ADD_FAILURE() << shape.str() << ": member " << member << " has " << is.at(i) << " at " << i << ", not "
                      << want.at(i);
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
      const bool padding = s.valid && padded * s.box() + number >= *s.valid;
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

// Dense boxes of these sizes, the members' one after the other.
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

// A random layout of the box dims and, where the boxes of all members lie in one memory, of the members among them.
inline void place_boxes(std::mt19937& random, const CollectiveShape& s, bool stepped, std::vector<i64>& strides,
                        i64& step) {
  const std::size_t dims = s.sizes.size();
  std::vector<std::size_t> order(dims + (stepped ? 1 : 0));
  std::iota(order.begin(), order.end(), 0);
  if (random() % 2) std::shuffle(order.begin(), order.end(), random);
  strides.assign(dims, 0);
  i64 next = 1 + i64(random() % 3 == 0);
  for (std::size_t k = order.size(); k-- > 0;) {
    const i64 size = order[k] == dims ? s.members : s.sizes[order[k]];
    (order[k] == dims ? step : strides[order[k]]) = next;
    next *= std::max<i64>(1, size);
    if (random() % 3 == 0) next += i64(random() % 4);
  }
}

// Of any kind and type, with any strides; now and then with padding.
inline CollectiveShape random_shape(std::mt19937& random, int members) {
  CollectiveShape s{.kind = all_kinds[random() % 4], .members = members, .axes = {"data"}};
  s.dtype = std::array{f32, f64, i32}[random() % 3];
  s.how = s.kind == CollectiveKind::reduce && random() % 3 == 0 ? Reduce::max : Reduce::sum;
  if (s.kind != CollectiveKind::reduce && s.kind != CollectiveKind::exchange && random() % 4 == 0) {
    s = dense(s.kind, s.dtype, members, {i64(random() % 3000)});
    s.valid = i64(random() % unsigned(members * s.box() + 1));
    return s;
  }
  for (std::size_t d = random() % 5; d > 0; --d) s.sizes.push_back(1 + i64(random() % (random() % 3 == 0 ? 40 : 5)));
  place_boxes(random, s, s.kind == CollectiveKind::scatter || s.kind == CollectiveKind::exchange, s.in_strides,
              s.in_step);
  place_boxes(random, s, s.kind == CollectiveKind::gather || s.kind == CollectiveKind::exchange, s.out_strides,
              s.out_step);
  return s;
}

}  // namespace stretto::test

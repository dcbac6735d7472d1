#include "stretto/comm/collective_work.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "stretto/comm/collective.h"

namespace stretto {
namespace {

constexpr std::size_t max_dims = 16;
constexpr i64 block_bytes = 4096;       // what is summed at a time: all operands' blocks stay in the first cache
constexpr i64 copy_bytes = 16384;       // what is copied to several targets at a time
constexpr u64 chunk_bytes = 256 << 10;  // read and written

struct Plus {
  template <class T>
  T operator()(T a, T b) const {
    return a + b;
  }
  std::int32_t operator()(std::int32_t a, std::int32_t b) const {
    return std::int32_t(std::uint32_t(a) + std::uint32_t(b));
  }
};
struct Larger {  // a NaN stays
  template <class T>
  T operator()(T a, T b) const {
    return a < b || b != b ? b : a;
  }
};

// The tree over operands' blocks of at most block_bytes, into memory that no operand lies in.
template <class T, class Add>
struct BlockTree {
  static constexpr i64 capacity = block_bytes / i64(sizeof(T));
  const std::byte* const* in;
  i64 offset, stride, count;  // elements

  // The operand itself where it is dense, else packed.
  const T* operand(int member, T* packed) const {
    const T* from = reinterpret_cast<const T*>(in[member]) + offset;
    if (stride == 1) return from;
    for (i64 i = 0; i < count; ++i) packed[i] = from[i * stride];
    return packed;
  }
  void reduce(int first, int n, T* __restrict to) const {
    const Add add;
    if (n <= 4) {
      T packed[4][std::size_t(capacity)];
      std::array<const T*, 4> x{};
      for (int k = 0; k < n; ++k) x[std::size_t(k)] = operand(first + k, packed[k]);
      const T *a = x[0], *b = x[1], *c = x[2], *d = x[3];
      if (n == 1) std::copy_n(a, count, to);
      if (n == 2)
        for (i64 i = 0; i < count; ++i) to[i] = add(a[i], b[i]);
      if (n == 3)
        for (i64 i = 0; i < count; ++i) to[i] = add(add(a[i], b[i]), c[i]);
      if (n == 4)
        for (i64 i = 0; i < count; ++i) to[i] = add(add(a[i], b[i]), add(c[i], d[i]));
      return;
    }
    const int half = tree_half(n);
    reduce(first, half, to);
    T right[std::size_t(capacity)];
    reduce(first + half, n - half, right);
    for (i64 i = 0; i < count; ++i) to[i] = add(to[i], right[i]);
  }
};

template <std::size_t element>
void spread(std::byte* to, i64 to_stride, const std::byte* from, i64 from_stride, i64 count) {
  for (i64 i = 0; i < count; ++i)
    std::memcpy(to + i * to_stride * i64(element), from + i * from_stride * i64(element), element);
}

void copy_run(std::size_t element, std::byte* to, i64 to_stride, const std::byte* from, i64 from_stride, i64 count) {
  if (to == from && to_stride == from_stride) return;
  if (to_stride == 1 && from_stride == 1)
    std::memcpy(to, from, std::size_t(count) * element);
  else if (element == 8)
    spread<8>(to, to_stride, from, from_stride, count);
  else if (element == 4)
    spread<4>(to, to_stride, from, from_stride, count);
  else
    spread<2>(to, to_stride, from, from_stride, count);
}

}  // namespace

CollectiveWork::CollectiveWork(const CollectiveShape& s) : shape_(merged(s)), element_(size_of(s.dtype)) {
  STRETTO_ASSERT(shape_.sizes.size() <= max_dims && (shape_.valid < 0 || shape_.sizes.size() <= 1));
  if (!shape_.sizes.empty()) {
    in_stride_ = shape_.in_strides.back();
    out_stride_ = shape_.out_strides.back();
  }
  const u64 n = u64(shape_.members);
  u64 boxes = 1, sources = 1, targets = 1;
  if (shape_.sums()) {
    sum_ = sum_for(shape_.dtype, shape_.how);
    sources = n;
  }
  if (shape_.kind == CollectiveKind::reduce || shape_.kind == CollectiveKind::gather) targets = n;
  if (shape_.kind == CollectiveKind::gather || shape_.kind == CollectiveKind::scatter) boxes = n;
  if (shape_.kind == CollectiveKind::exchange) boxes = n * n;
  const u64 size = u64(shape_.box()), touched = (sources + targets) * element_;
  bytes_ = boxes * size * touched;
  if (size == 0) return;
  // Even chunks, whole blocks of a cache line each.
  const u64 parts = std::max<u64>(1, size * touched / chunk_bytes), line = 64 / element_;
  length_ = i64(((size + parts - 1) / parts + line - 1) / line * line);
  per_box_ = std::uint32_t((size + u64(length_) - 1) / u64(length_));
  STRETTO_ASSERT(boxes * per_box_ < (1u << 31));
  chunks_ = std::uint32_t(boxes) * per_box_;
}

CollectiveWork::Box CollectiveWork::box(std::uint32_t number) const {
  const int n = shape_.members, b = int(number);
  switch (shape_.kind) {
    case CollectiveKind::reduce:
      return {.sources = n, .targets = n, .valid = shape_.box()};
    case CollectiveKind::gather:
      return {.first_source = b, .targets = n, .out = b * shape_.out_step, .valid = shape_.box_valid(b)};
    case CollectiveKind::scatter:
      return {.sources = n, .first_target = b, .in = b * shape_.in_step, .valid = shape_.box_valid(b)};
    case CollectiveKind::exchange:
      break;
  }
  const int target = b / n, source = b % n;
  return {.first_source = source,
          .first_target = target,
          .in = target * shape_.in_step,
          .out = source * shape_.out_step,
          .valid = shape_.box()};
}

template <class F>
void CollectiveWork::for_runs(i64 first, i64 last, F f) const {
  const std::size_t dims = shape_.sizes.size();
  if (dims <= 1) {
    if (first < last) f(first * in_stride_, first * out_stride_, last - first);
    return;
  }
  std::array<i64, max_dims> index{};
  i64 in = 0, out = 0, rest = first;
  for (std::size_t d = dims; d-- > 0;) {
    index[d] = rest % shape_.sizes[d];
    rest /= shape_.sizes[d];
    in += index[d] * shape_.in_strides[d];
    out += index[d] * shape_.out_strides[d];
  }
  while (first < last) {
    std::size_t d = dims - 1;
    const i64 count = std::min(shape_.sizes[d] - index[d], last - first);
    f(in, out, count);
    first += count;
    in += count * shape_.in_strides[d];
    out += count * shape_.out_strides[d];
    index[d] += count;
    for (; d > 0 && index[d] == shape_.sizes[d]; --d) {
      in += shape_.in_strides[d - 1] - index[d] * shape_.in_strides[d];
      out += shape_.out_strides[d - 1] - index[d] * shape_.out_strides[d];
      index[d] = 0;
      ++index[d - 1];
    }
  }
}

template <class T, class Add>
void CollectiveWork::sum(const CollectiveWork& w, const Box& b, i64 first, i64 last, const std::byte* const* in,
                         std::byte* const* out) {
  T block[std::size_t(BlockTree<T, Add>::capacity)];
  w.for_runs(first, last, [&](i64 from, i64 to, i64 count) {
    for (i64 done = 0; done < count;) {
      const i64 now = std::min(count - done, BlockTree<T, Add>::capacity);
      BlockTree<T, Add>{in, b.in + from + done * w.in_stride_, w.in_stride_, now}.reduce(b.first_source, b.sources,
                                                                                         block);
      for (int t = b.first_target; t < b.first_target + b.targets; ++t)
        copy_run(sizeof(T), out[t] + (b.out + to + done * w.out_stride_) * i64(sizeof(T)), w.out_stride_,
                 reinterpret_cast<const std::byte*>(block), 1, now);
      done += now;
    }
  });
}

CollectiveWork::Sum CollectiveWork::sum_for(DType dtype, Reduce how) {
  const bool max = how == Reduce::max;
  switch (dtype) {
    case f32:
      return max ? &sum<float, Larger> : &sum<float, Plus>;
    case f64:
      return max ? &sum<double, Larger> : &sum<double, Plus>;
    case i32:
      return max ? &sum<std::int32_t, Larger> : &sum<std::int32_t, Plus>;
    default:
      throw Error("collective", "sums of {} are not made", name_of(dtype)).hint("cast to f32 first");
  }
}

void CollectiveWork::copy(const Box& b, i64 first, i64 last, const std::byte* const* in, std::byte* const* out) const {
  const i64 size = i64(element_), piece = b.targets == 1 ? last - first : copy_bytes / size;
  for_runs(first, last, [&](i64 from, i64 to, i64 count) {
    for (i64 done = 0; done < count; done += piece)
      for (int t = b.first_target; t < b.first_target + b.targets; ++t)
        copy_run(element_, out[t] + (b.out + to + done * out_stride_) * size, out_stride_,
                 in[b.first_source] + (b.in + from + done * in_stride_) * size, in_stride_,
                 std::min(piece, count - done));
  });
}

void CollectiveWork::clear(const Box& b, i64 first, i64 last, std::byte* const* out) const {
  for_runs(first, last, [&](i64, i64 to, i64 count) {
    for (i64 i = 0; i < count; ++i)
      std::memset(out[b.first_target] + (b.out + to + i * out_stride_) * i64(element_), 0, element_);
  });
}

void CollectiveWork::run(std::uint32_t chunk, const std::byte* const* in, std::byte* const* out) const {
  const Box b = box(chunk / per_box_);
  const i64 first = chunk % per_box_ * length_, last = std::min(first + length_, shape_.box());
  const i64 middle = std::clamp(b.valid, first, last);
  if (sum_)
    sum_(*this, b, first, middle, in, out);
  else
    copy(b, first, middle, in, out);
  if (shape_.kind == CollectiveKind::scatter) clear(b, middle, last, out);
}

}  // namespace stretto

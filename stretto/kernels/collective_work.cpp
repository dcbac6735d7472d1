#include "stretto/kernels/collective_work.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "stretto/base/bf16.h"
#include "stretto/ir/tree_sum.h"
#include "stretto/kernels/box_runs.h"

namespace stretto {
namespace {

constexpr i64 block_bytes = 4096;       // what is summed at a time: all operands' blocks stay in the first cache
constexpr i64 copy_bytes = 16384;       // what is copied to several targets at a time
constexpr u64 chunk_bytes = 256 << 10;  // read and written

struct Plus {
  template <class T>
  T operator()(T a, T b) const {
    return T(a + b);  // bf16 is rounded after every addition: a tree over groups stays the tree over all
  }
  std::int32_t operator()(std::int32_t a, std::int32_t b) const {
    return static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b);
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
  static constexpr i64 size = sizeof(T), capacity = block_bytes / size;
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
      T packed[4][capacity];
      std::array<const T*, 4> x{};
      for (int k = 0; k < n; ++k) x[k] = operand(first + k, packed[k]);
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
    T right[capacity];
    reduce(first + half, n - half, right);
    for (i64 i = 0; i < count; ++i) to[i] = add(to[i], right[i]);
  }
};

template <class T, class Add>
void dense_sum(int n, const std::byte* const* in, i64 count, std::byte* out) {
  using Tree = BlockTree<T, Add>;
  T block[Tree::capacity];
  for (i64 done = 0; done < count; done += Tree::capacity) {
    const i64 now = std::min(count - done, Tree::capacity);
    Tree{in, done, 1, now}.reduce(0, n, block);
    std::memcpy(out + done * Tree::size, block, now * Tree::size);
  }
}

// make.operator()<T, Add>(), with the type of the elements and the way in which they are added up.
template <class Make>
auto for_sums_of(DType dtype, Reduce how, Make make) {
  const auto of = [&]<class T>() {
    return how == Reduce::max ? make.template operator()<T, Larger>() : make.template operator()<T, Plus>();
  };
  switch (dtype) {
    case f32:
      return of.template operator()<float>();
    case f64:
      return of.template operator()<double>();
    case bf16:
      return of.template operator()<BF16>();
    case i32:
      return of.template operator()<std::int32_t>();
    default:
      throw Error("collective", "sums of {} are not made", name_of(dtype)).hint("cast to f32 first");
  }
}

}  // namespace

CollectiveWork::CollectiveWork(const CollectiveShape& s) : shape_(merged(s)), element_(size_of(s.dtype)) {
  STRETTO_ASSERT(shape_.sizes.size() <= max_box_dims && (!shape_.valid || shape_.sizes.size() <= 1));
  in_stride_ = inner_in_stride(shape_);
  out_stride_ = inner_out_stride(shape_);
  const u64 n = shape_.members;
  u64 boxes = 1, sources = 1, targets = 1;
  if (shape_.sums()) {
    sum_ = sum_for(shape_.dtype, shape_.how);
    sources = n;
  }
  if (shape_.kind == CollectiveKind::reduce || shape_.kind == CollectiveKind::gather) targets = n;
  if (shape_.kind == CollectiveKind::gather || shape_.kind == CollectiveKind::scatter) boxes = n;
  if (shape_.kind == CollectiveKind::exchange) boxes = n * n;
  if (shape_.rows) boxes = n;
  const u64 size = shape_.rows ? shape_.result() : shape_.box(), touched = (sources + targets) * element_;
  bytes_ = boxes * size * touched;
  if (size == 0) return;
  // Even chunks, whole blocks of a cache line each.
  const u64 parts = std::max<u64>(1, size * touched / chunk_bytes), line = 64 / element_;
  u64 length = ((size + parts - 1) / parts + line - 1) / line * line;
  if (shape_.rows) length = (length + shape_.rows->elements - 1) / shape_.rows->elements * shape_.rows->elements;
  length_ = length;
  per_box_ = (size + length - 1) / length;
  STRETTO_ASSERT(boxes * per_box_ < (1u << 31));
  chunks_ = boxes * per_box_;
}

CollectiveWork::Box CollectiveWork::box(int b) const {
  const int n = shape_.members;
  switch (shape_.kind) {
    case CollectiveKind::reduce:
      return {.sources = n, .targets = n, .valid = shape_.box()};
    case CollectiveKind::gather:
      return {.first_source = b, .targets = n, .out = b * shape_.out_step, .valid = shape_.box_valid(b)};
    case CollectiveKind::scatter:
      return {.sources = n, .first_target = b, .in = b * shape_.in_step, .valid = shape_.box_valid(b)};
    case CollectiveKind::exchange:
    case CollectiveKind::rows:  // boxes are as they come: run_rows
      break;
  }
  const int target = b / n, source = b % n;
  return {.first_source = source,
          .first_target = target,
          .in = target * shape_.in_step,
          .out = source * shape_.out_step,
          .valid = shape_.box()};
}

template <class T, class Add>
void CollectiveWork::sum(const CollectiveWork& w, const Box& b, i64 first, i64 last, const std::byte* const* in,
                         std::byte* const* out) {
  using Tree = BlockTree<T, Add>;
  T block[Tree::capacity];
  for_box_runs(w.shape_, first, last, [&](i64 from, i64 to, i64 count) {
    for (i64 done = 0; done < count;) {
      const i64 now = std::min(count - done, Tree::capacity);
      Tree{in, b.in + from + done * w.in_stride_, w.in_stride_, now}.reduce(b.first_source, b.sources, block);
      for (int t = b.first_target; t < b.first_target + b.targets; ++t)
        copy_run(sizeof(T), out[t] + (b.out + to + done * w.out_stride_) * Tree::size, w.out_stride_,
                 reinterpret_cast<const std::byte*>(block), 1, now);
      done += now;
    }
  });
}

DenseSum dense_sum_for(DType dtype, Reduce how) {
  return for_sums_of(dtype, how, []<class T, class Add>() -> DenseSum { return &dense_sum<T, Add>; });
}

CollectiveWork::Sum CollectiveWork::sum_for(DType dtype, Reduce how) {
  return for_sums_of(dtype, how, []<class T, class Add>() -> Sum { return &sum<T, Add>; });
}

void CollectiveWork::copy(const Box& b, i64 first, i64 last, const std::byte* const* in, std::byte* const* out) const {
  const i64 size = element_, part = b.targets == 1 ? last - first : copy_bytes / size;
  for_box_runs(shape_, first, last, [&](i64 from, i64 to, i64 count) {
    for (i64 done = 0; done < count; done += part)
      for (int t = b.first_target; t < b.first_target + b.targets; ++t)
        copy_run(element_, out[t] + (b.out + to + done * out_stride_) * size, out_stride_,
                 in[b.first_source] + (b.in + from + done * in_stride_) * size, in_stride_,
                 std::min(part, count - done));
  });
}

void CollectiveWork::clear(const Box& b, i64 first, i64 last, std::byte* const* out) const {
  const i64 size = element_;
  for_box_runs(shape_, first, last, [&](i64, i64 to, i64 count) {
    for (i64 i = 0; i < count; ++i) std::memset(out[b.first_target] + (b.out + to + i * out_stride_) * size, 0, size);
  });
}

// Elements first, ..., last - 1 of what a member gets: rows of every source, one after the other, then zeros.
void CollectiveWork::run_rows(int target, i64 first, i64 last, const std::byte* const* in, std::byte* const* out,
                              const std::int32_t* counts) const {
  const int n = shape_.members;
  const i64 row = shape_.rows->elements;
  i64 came = 0;  // rows of the sources so far
  for (int source = 0; source < n; ++source) {
    const std::int32_t* from = counts + source * n;
    const i64 begin = came * row, end = begin + from[target] * row;
    const i64 sent = std::accumulate(from, from + target, i64(0));
    const Box b{.first_source = source,
                .first_target = target,
                .in = sent * shape_.in_step,
                .out = came * shape_.out_step,
                .valid = end - begin};
    const i64 low = std::max(first, begin), high = std::min(last, end);
    if (low < high) copy(b, low - begin, high - begin, in, out);
    came += from[target];
  }
  clear({.first_target = target}, std::clamp(came * row, first, last), last, out);
}

void CollectiveWork::run(std::uint32_t chunk, const std::byte* const* in, std::byte* const* out,
                         const std::int32_t* counts) const {
  if (shape_.rows) {
    const i64 first = chunk % per_box_ * length_;
    return run_rows(int(chunk / per_box_), first, std::min(first + length_, shape_.result()), in, out, counts);
  }
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

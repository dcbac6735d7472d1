// What the kernels of choose and of its gradient share: rows sorted by expert, and how matrices lie.
//
//   const ChosenRows p(x, y, w, which, experts);    // when preparing
//   const SortedRows rows(p, ids, scratch);         // per run; the order of an expert's rows is that of the tokens
//   rows.each_block(p.space, [&](const RowBlock& b) {
//     const RowMatrix<float> m = as_matrix(x, {rows.a + b.first, b.rows, k}, memory);
//   });
#pragma once
#include <limits>

#include "stretto/kernels/cpu/bf16_tiles.h"
#include "stretto/kernels/cpu/padding.h"
#include "stretto/kernels/cpu/pauses.h"
#include "stretto/kernels/cpu/with_float.h"
#include "stretto/ops/choose.h"

namespace stretto {

// a holds the dims of w that come first (K), b the others (N); w itself is operand or result.
struct ChosenRows {
  Nest rows;                  // arrays: a, b, which
  Nest inner, outer;          // over K: a, w; over N: b, w
  i64 expert = 0, first = 0;  // stride in w; the first expert that is here
  choosing::Workspace space;  // its numbers of experts and rows, K and N
  bool dense = false;         // rows of a and b are contiguous, and w is K x N ...
  bool turned = false;        // ... or N x K
  i64 leading = 1;            // from one row of w to the next

  ChosenRows(const View& a, const View& b, const View& w, const View& which, DimId by)
      : rows(valid_nest(which.dims, {&a, &b, &which})) {
    DimSet first_dims, second;
    for (DimId d : without(w.dims, {by})) (contains(a.dims, d) ? first_dims : second).push_back(d);
    inner = valid_nest(first_dims, {&a, &w});
    outer = valid_nest(second, {&b, &w});
    expert = w.stride(by);
    first = w.offsets[std::size_t(position(w.dims, by))];
    space = {.experts = w.valid(by), .rows = turns(rows), .k = turns(inner), .n = turns(outer)};
    find_matrix();
  }
  static i64 turns(const Nest& nest) {
    i64 n = 1;
    for (const Loop& l : nest) n *= l.size;
    return n;
  }

 private:
  void find_matrix() {
    if (inner.size() > 1 || outer.size() > 1) return;
    const Loop k = inner.empty() ? Loop{1, {1, space.n}} : inner[0], n = outer.empty() ? Loop{1, {1, 1}} : outer[0];
    if (k.step[0] != 1 || n.step[0] != 1) return;
    const i64 along_k = k.step[1], along_n = n.step[1];
    dense = turned = (along_k == 1 || space.k == 1) && along_n >= space.k && along_n > 1;
    leading = along_n;
    if (along_n == 1 && along_k >= space.n) dense = true, turned = false, leading = along_k;
  }
};

// As many rows of one expert as are multiplied at once.
struct RowBlock {
  i64 expert, first, rows;
};

// In the workspace, where matrices of rows follow. A row that names no expert of here is in no list.
struct SortedRows {
  i64 *starts, *a, *b;
  std::byte* rest;

  SortedRows(const ChosenRows& p, const std::int32_t* which, std::byte* scratch)
      : starts(reinterpret_cast<i64*>(scratch)), a(starts + p.space.experts + 1), b(a + p.space.rows) {
    rest = reinterpret_cast<std::byte*>(starts + p.space.offsets());
    const i64 experts = p.space.experts;
    const auto each = [&](const auto& f) {
      run_nest(p.rows, [&](Steps at) {
        const i64 e = which[at[2]] - p.first;
        if (e >= 0 && e < experts) f(e, at);
      });
    };
    std::fill_n(starts, experts + 1, 0);
    each([&](i64 e, const Steps&) { ++starts[e + 1]; });
    for (i64 e = 0; e < experts; ++e) starts[e + 1] += starts[e];
    each([&](i64 e, const Steps& at) {  // starts move on while rows are placed ...
      a[starts[e]] = at[0];
      b[starts[e]++] = at[1];
    });
    for (i64 e = experts; e > 0; --e) starts[e] = starts[e - 1];  // ... and back again
    starts[0] = 0;
  }

  template <class F>
  void each_block(const choosing::Workspace& space, const F& f) const {
    for (i64 e = 0; e < space.experts; ++e)
      for (i64 from = starts[e], end = starts[e + 1]; from < end; from += space.block)
        f(RowBlock{e, from, std::min(space.block, end - from)});
  }
};

// The rows of an operand or a result that a block has.
struct RowPlaces {
  const i64* at;
  i64 rows, n;  // n: elements of a row

  // From one row to the next, where they lie as those of a matrix do.
  std::optional<i64> pitch() const {
    if (rows == 1) return n;
    const i64 step = at[1] - at[0];
    if (step < n || step > std::numeric_limits<int>::max()) return {};
    for (i64 i = 2; i < rows; ++i)
      if (at[i] - at[i - 1] != step) return {};
    return step;
  }
};

template <class T>
struct RowMatrix {
  T* data;
  i64 pitch;
};

// One after the other, in f32 where they are bf16 and that is asked for; `n` of the places' elements are copied.
template <class T, class W>
void gather_rows(const T* from, const RowPlaces& places, W* gathered) {
  constexpr i64 ahead = 2, line = 64 / sizeof(T);
  const i64 n = places.n;
  for (i64 i = 0; i < places.rows; ++i) {
    if (i + ahead < places.rows)  // rows are far apart: without a hint every one would be waited for
      for (i64 j = 0; j < n; j += line) __builtin_prefetch(from + places.at[i + ahead] + j, 0, 2);
    std::copy_n(from + places.at[i], n, gathered + i * n);
  }
}

// Where they lie, or gathered; what is widened always is.
template <class T, class W>
RowMatrix<const W> as_matrix(const T* from, const RowPlaces& places, W* gathered) {
  if constexpr (std::is_same_v<T, W>)
    if (const auto pitch = places.pitch()) return {from + places.at[0], *pitch};
  gather_rows(from, places, gathered);
  return {gathered, places.n};
}

template <auto plan_of, auto run>
Runner prepare_chosen(const Call& call) {
  return with_stored(call.in[0].dtype, [&]<class T>() -> Runner {
    return [p = plan_of(call)](const Args& args) { run.template operator()<T>(p, args); };
  });
}
template <auto plan_of>
bool accepts_chosen_tiles(const Call& call) {
  if (call.in[0].dtype != bf16 || bf16_form().empty()) return false;
  const auto p = plan_of(call);
  return p.dense && std::min(p.space.k, p.space.n) >= 16;
}
// Of an op whose plan is a ChosenRows: products of blocks where rows are dense, by the processor's instructions for
// bf16 where it has them, else element by element.
template <auto plan_of, auto tiles, auto blocks, auto reference>
constexpr Kernel chosen_kernels[] = {
    {.name = "tiles",
     .accepts = &accepts_chosen_tiles<plan_of>,
     .prepare = [](const Call& c) -> Runner { return [p = plan_of(c)](const Args& args) { tiles(p, args); }; }},
    {.name = "blocks",
     .accepts = [](const Call& c) { return plan_of(c).dense; },
     .prepare = &prepare_chosen<plan_of, blocks>},
    {.name = "reference", .prepare = &prepare_chosen<plan_of, reference>}};

}  // namespace stretto

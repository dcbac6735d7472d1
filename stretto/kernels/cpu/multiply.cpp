#include "stretto/kernels/cpu/multiply.h"

#include <algorithm>
#include <cstring>

#include "stretto/kernels/cpu/pauses.h"
#include "stretto/kernels/cpu/product_forms.h"
#include "stretto/kernels/cpu/products.h"

namespace stretto {
namespace {

// Of a thread's buffer. The left side is read panel by panel, each from the first cache while the right side's come
// from the second one.
constexpr i64 right_bytes = 512 << 10, left_bytes = i64(product_buffer) - right_bytes;

// Numbers in a line of the cache.
template <class T>
constexpr i64 line_of = i64(64 / sizeof(T));
template <class T>
constexpr i64 most_rows = left_bytes / i64(sizeof(T)) / product_block / most_tile_rows* most_tile_rows;

// Parts of at most so many, of nearly the same size, which is whole panels.
i64 evenly(i64 whole, i64 most, i64 panel) {
  const i64 parts = std::max<i64>(1, (whole + most - 1) / most);
  return std::max(panel, ((whole + parts - 1) / parts + panel - 1) / panel * panel);
}

// to[c * pitch + r] = lines[r][at + c] for 4 x 4 numbers.
template <class T>
inline void turn_4x4(const T* const* lines, i64 at, T* to, i64 pitch) {
  typedef T V __attribute__((vector_size(4 * sizeof(T))));
  V v[4];
  for (int i = 0; i < 4; ++i) std::memcpy(&v[i], lines[i] + at, sizeof(V));
  const V a = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5), b = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5);
  const V c = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7), d = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
  v[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5), v[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
  v[2] = __builtin_shufflevector(c, d, 0, 1, 4, 5), v[3] = __builtin_shufflevector(c, d, 2, 3, 6, 7);
  for (int i = 0; i < 4; ++i) std::memcpy(to + i * pitch, &v[i], sizeof(V));
}

struct Range {
  i64 first, count;
};

// Panels are to[summed][width], one after the other; what the last one has beyond `across` does not matter. Lines are
// short and far apart: without a hint each of them would be waited for.
template <class T, int width>
void pack_summed(const ProductLines<T>& from, Range across, Range sum, T* to) {
  constexpr i64 ahead = 4;
  for (i64 i = 0; i < sum.count; ++i) {
    const T* const line = from.line(sum.first + i) + across.first;
    const T* const later = from.line(sum.first + std::min(i + ahead, sum.count - 1)) + across.first;
    T* panel = to + i * width;
    i64 at = 0;
    for (; at + width <= across.count; at += width, panel += sum.count * width) {
      for (i64 j = 0; j < width; j += line_of<T>) __builtin_prefetch(later + at + j);
      std::memcpy(panel, line + at, width * sizeof(T));
    }
    for (i64 j = 0; at < across.count && j < width; ++j) panel[j] = at + j < across.count ? line[at + j] : T(0);
  }
}
template <class T, int width>
void pack_turned(const ProductLines<T>& from, Range across, Range sum, T* to) {
  for (i64 at = 0; at < across.count; at += width, to += sum.count * width) {
    const T *lines[width], *later[width];
    for (i64 i = 0; i < width; ++i) {
      lines[i] = from.line(across.first + std::min(at + i, across.count - 1)) + sum.first;
      later[i] = from.line(across.first + std::min(at + width + i, across.count - 1)) + sum.first;
    }
    i64 c = 0;
    for (; c + line_of<T> <= sum.count; c += line_of<T>) {
      for (i64 i = 0; i < width; ++i) __builtin_prefetch(later[i] + c);
      for (i64 i = 0; i < width; i += 4)
        for (i64 j = 0; j < line_of<T>; j += 4) turn_4x4(lines + i, c + j, to + (c + j) * width + i, width);
    }
    for (; c < sum.count; ++c)
      for (i64 i = 0; i < width; ++i) to[c * width + i] = lines[i][c];
  }
}
template <class T, int width>
void pack(const ProductLines<T>& from, Range across, Range sum, T* to) {
  from.summed ? pack_summed<T, width>(from, across, sum, to) : pack_turned<T, width>(from, across, sum, to);
}
template <class T>
void pack_right(i64 width, const ProductLines<T>& from, Range across, Range sum, T* to) {
  constexpr int least = int(32 / sizeof(T));  // two registers of 16 bytes
  if (width == 4 * least) return pack<T, 4 * least>(from, across, sum, to);
  if (width == 2 * least) return pack<T, 2 * least>(from, across, sum, to);
  pack<T, least>(from, across, sum, to);
}

// Packed panels, and where in the result what they make belongs.
template <class T>
struct Panels {
  const T *left, *right;
  i64 k;
  Range rows, columns;
  bool add;
};

// Tiles that are not whole, or whose rows lie anywhere, are made beside the result.
template <class T>
void make_tile(const ProductForm<T>& form, const Panels<T>& p, const ProductRows<T>& out) {
  const int second = p.columns.count > form.lanes;
  const ProductTile<T> tile = form.tiles[second][p.rows.count - 1];
  if (!out.at && p.columns.count == (second + 1) * form.lanes)
    return tile(p.k, p.left, p.right, out.row(p.rows.first) + p.columns.first, out.step, p.add);
  alignas(64) T made[most_tile_rows * 2 * line_of<T>];
  tile(p.k, p.left, p.right, made, form.columns(), false);
  for (i64 r = 0; r < p.rows.count; ++r) {
    T* const to = out.row(p.rows.first + r) + p.columns.first;
    const T* const sums = made + r * form.columns();
    for (i64 j = 0; j < p.columns.count; ++j) to[j] = p.add ? to[j] + sums[j] : sums[j];
  }
}

// All tiles of a panel of the left side by all panels of the right one, each of which is used while it is near.
template <class T>
void multiply_panels(const ProductForm<T>& form, const Panels<T>& p, const ProductRows<T>& out) {
  const i64 width = form.columns();
  for (i64 c = 0; c < p.columns.count; c += width)
    for (i64 r = 0; r < p.rows.count; r += form.rows)
      make_tile<T>(form,
                   {p.left + r,
                    p.right + c * p.k,
                    p.k,
                    {p.rows.first + r, std::min(form.rows, p.rows.count - r)},
                    {p.columns.first + c, std::min(width, p.columns.count - c)},
                    p.add},
                   out);
}

template <class T>
void clear(const MatrixProduct<T>& p) {
  for (i64 i = 0; i < p.size.m && !p.out.add; ++i) std::fill_n(p.out.row(i), p.size.n, T(0));
}

// In whole tiles of every form: the same cut on every processor, and no tile is made twice.
constexpr i64 part_rows = most_tile_rows, part_columns = 32;

// Share `index` of `count` of what comes in units.
Range share(i64 whole, i64 unit, i64 index, i64 count) {
  const i64 units = (whole + unit - 1) / unit;
  const i64 first = std::min(whole, units * index / count * unit);
  return {first, std::min(whole, units * (index + 1) / count * unit) - first};
}

}  // namespace

ProductBlock block_of_part(const ProductSize& size, bool rows_stay, i64 index, i64 count) {
  i64 best = 1;  // of rows; every part packs all lines that its block has
  const auto packed = [&](i64 down) {
    return double(size.m) / double(down) + double(size.n) * double(down) / double(count);
  };
  for (i64 down = 2; down <= count && !rows_stay; ++down)
    if (count % down == 0 && packed(down) < packed(best)) best = down;
  const i64 across = count / best;
  const Range rows = share(size.m, part_rows, index / across, best);
  const Range columns = share(size.n, part_columns, index % across, across);
  return {rows.first, rows.count, columns.first, columns.count};
}

template <class T>
void multiply(const ProductForm<T>& form, const MatrixProduct<T>& p, Pauses* pauses) {
  if (p.size.k == 0) return clear(p);
  if (p.size.m == 0 || p.size.n == 0) return;
  const auto [m, n, k] = p.size;
  T *const right = reinterpret_cast<T*>(product_memory()), *const left = right + right_bytes / i64(sizeof(T));
  const i64 width = form.columns(), most_columns = right_bytes / i64(sizeof(T)) / product_block / width * width;
  const i64 row_block = evenly(m, most_rows<T>, most_tile_rows), column_block = evenly(n, most_columns, width);
  for (i64 m0 = 0; m0 < m; m0 += row_block)
    for (i64 k0 = 0; k0 < k; k0 += product_block) {
      const Range rows{m0, std::min(row_block, m - m0)}, sum{k0, std::min(product_block, k - k0)};
      pack<T, most_tile_rows>(p.left, rows, sum, left);
      for (i64 n0 = 0; n0 < n; n0 += column_block) {
        const Range columns{n0, std::min(column_block, n - n0)};
        pack_right(width, p.right, columns, sum, right);
        for (i64 i = 0; i < rows.count; i += most_tile_rows) {
          const Range some{m0 + i, std::min(most_tile_rows, rows.count - i)};
          multiply_panels<T>(form, {left + i * sum.count, right, sum.count, some, columns, p.out.add || k0 > 0}, p.out);
          if (pauses) pauses->after(some.count * columns.count * sum.count / 40);  // a pass's element takes as long
        }
      }
    }
}
template void multiply(const ProductForm<float>&, const MatrixProduct<float>&, Pauses*);
template void multiply(const ProductForm<double>&, const MatrixProduct<double>&, Pauses*);

template <class T>
void multiply(const MatrixProduct<T>& p, Pauses* pauses) {
  multiply(product_form<T>(), p, pauses);
}
template void multiply(const MatrixProduct<float>&, Pauses*);
template void multiply(const MatrixProduct<double>&, Pauses*);

}  // namespace stretto

// Matrix products straight on the operands' memory where their dims collapse to matrices; otherwise on packed blocks.
#include "stretto/ops/contract.h"

#include <optional>

#include "stretto/kernels/cpu/bf16_tiles.h"
#include "stretto/kernels/cpu/multiply.h"
#include "stretto/kernels/cpu/padding.h"
#include "stretto/kernels/cpu/pauses.h"
#include "stretto/kernels/cpu/share.h"
#include "stretto/kernels/cpu/with_float.h"
#include "stretto/kernels/inner/product_plan.h"

namespace stretto {
namespace {

using Axis = ProductAxis;
using Groups = ProductAxes;
using Group = ProductAxes::Group;
using Matrix = ProductMatrix;
using Plan = ProductPlan;
using enum ProductAxes::Group;

// What a thread does in a second, about: enough to tell what is worth another one.
constexpr double multiplied_per_second = 25e9;

// What one of several threads makes of the products of the outer loops: some of them where there are many, else a block
// of each.
class Portion {
 public:
  Portion(const Nest& outer, ProductSize size, i64 part, i64 parts) : part_(part), parts_(parts) {
    const i64 products = turns(outer);
    whole_ = products % parts == 0 || products >= 4 * parts;
    block_ = whole_ ? ProductBlock{0, size.m, 0, size.n} : block_of_part(size, false, part, parts);
  }
  bool takes_next() { return next_++ % parts_ == part_ || !whole_; }
  const ProductBlock& block() const { return block_; }

 private:
  i64 part_, parts_, next_ = 0;
  bool whole_ = false;
  ProductBlock block_;
};

// work(args, portion), by every thread that the products are worth.
template <class F>
void share_products(const Args& args, const Nest& outer, ProductSize size, double multiplied, const F& work) {
  const int parts = parts_worth(args, multiplied / multiplied_per_second);
  share(args, parts, [&](const Args& mine, int part) { work(mine, Portion(outer, size, part, parts)); });
}
double multiplied(const Plan& p) { return p.calls * double(p.m) * double(p.n) * double(p.k); }

// rows x columns of a matrix from (row, column) on, in the same order, without gaps. Returns its leading dimension.
i64 widen_matrix(const Matrix& m, const BF16* from, i64 row, i64 rows, i64 column, i64 columns, float* to) {
  const i64 lines = m.transposed ? columns : rows, length = m.transposed ? rows : columns;
  from += m.at(row, column);
  for (i64 i = 0; i < lines; ++i) widen(from + i * m.leading, length, to + i * length);
  return std::max<i64>(length, 1);
}

bool accepts_packed(const Call& call) {
  double total = 1;
  const Groups groups = product_axes(call);
  i64 size[4] = {1, 1, 1, 1};
  for (const Group g : {rows, columns, summed, kept})
    for (const Axis& x : groups.axes[g]) size[g] *= x.size, total *= double(x.size);
  return total >= 32768 && size[rows] >= 4 && size[columns] >= 4 && size[summed] >= 4;
}

// A small product has the bits of a matrix however its result lies: by itself, or within a larger value.
bool accepts_gemm(const Call& call) {
  const std::optional<Plan> p = product_plan(call);
  if (!p) return false;
  return p->calls <= 1 || p->m * p->n * p->k >= 4096 ||
         (product_axes(call).axes[kept].empty() && !accepts_packed(call));
}

// Blocks of bf16 operands are widened into scratch and multiplied there. A result in f32 is summed up where it lies,
// one in bf16 in scratch, and rounded once.
template <class O>
Runner prepare_widened(const Call& call) {
  Plan plan = *product_plan(call);
  const ContractBlock block = widened_block(plan.m, plan.n, plan.k);
  return [p = plan, block, padding = Padding(call.out[0]), accumulate = call.accumulate](const Args& args) {
    const bool add = accumulate && !args.now.overwrite;
    if (!add) padding.clear(args.output<O>());
    const auto square = [&](const Args& mine, Pauses& pauses, Steps at, i64 m0, i64 m, i64 n0, i64 n) {
      float* const left = reinterpret_cast<float*>(mine.scratch);
      float *const right = left + block.m * block.k, *const sums = right + block.k * block.n;
      const i64 rows = p.c.transposed ? n : m, width = p.c.transposed ? m : n;  // as they lie in memory
      O* const out = args.output<O>() + at[2] + p.c.at(m0, n0);
      float* z = sums;
      i64 pitch = width;
      if constexpr (std::is_same_v<O, float>) z = out, pitch = p.c.leading;
      bool more = std::is_same_v<O, float> && add;
      run_nest(p.inner, [&](Steps in) {
        for (i64 k0 = 0; k0 == 0 || k0 < p.k; k0 += std::max<i64>(block.k, 1)) {
          const i64 k = std::min(block.k, p.k - k0);
          const i64 lda = widen_matrix(p.a, args.input<BF16>(0) + at[0] + in[0], m0, m, k0, k, left);
          const i64 ldb = widen_matrix(p.b, args.input<BF16>(1) + at[1] + in[1], k0, k, n0, n, right);
          if (p.c.transposed)
            gemm(!p.b.transposed, !p.a.transposed, n, m, k, right, ldb, left, lda, more, z, pitch, &pauses);
          else
            gemm(p.a.transposed, p.b.transposed, m, n, k, left, lda, right, ldb, more, z, pitch, &pauses);
          more = true;
        }
      });
      if constexpr (std::is_same_v<O, BF16>)
        for (i64 r = 0; r < rows; ++r) {
          O* to = out + r * p.c.leading;
          for (i64 i = 0; i < width; ++i) to[i] = O(add ? to[i] + z[r * width + i] : z[r * width + i]);
        }
    };
    share_products(args, p.outer, {p.m, p.n, p.k}, multiplied(p), [&](const Args& mine, Portion portion) {
      const auto [row, rows, column, columns] = portion.block();
      Pauses pauses(mine);
      run_nest(p.outer, [&](Steps at) {
        if (!portion.takes_next()) return;
        for (i64 m0 = 0; m0 < rows; m0 += block.m)
          for (i64 n0 = 0; n0 < columns; n0 += block.n)
            square(mine, pauses, at, row + m0, std::min(block.m, rows - m0), column + n0,
                   std::min(block.n, columns - n0));
      });
    });
  };
}

bool accepts_tiled(const Call& call) {
  if (call.in[0].dtype != bf16 || bf16_form().empty()) return false;
  const std::optional<Plan> p = product_plan(call);
  return p && p->inner.empty() && std::min({p->m, p->n, p->k}) >= 16;
}

// Blocks of bf16 operands as tiles. A result that lies transposed is made as the product of the transposed operands.
template <class O>
Runner prepare_tiled(const Call& call) {
  const Plan plan = *product_plan(call);
  const bool turned = plan.c.transposed;
  struct Side {
    Matrix matrix;
    i64 size;
    int operand;
  };
  Side left{plan.a, plan.m, 0}, right{plan.b, plan.n, 1};
  if (turned) {
    std::swap(left, right);
    left.matrix.transposed = !left.matrix.transposed, right.matrix.transposed = !right.matrix.transposed;
  }
  const TiledBlock block = tiled_block(left.size, right.size, plan.k, std::is_same_v<O, float> ? f32 : bf16);
  return [=, outer = plan.outer, k = plan.k, leading = plan.c.leading, work = multiplied(plan) / 2,
          padding = Padding(call.out[0]), accumulate = call.accumulate](const Args& args) {
    const bool add = accumulate && !args.now.overwrite;
    if (!add) padding.clear(args.output<O>());
    const auto matrix = [&](const Side& s, Steps at, i64 row, i64 column) {
      const BF16* const data = args.input<BF16>(s.operand) + at[s.operand] + s.matrix.at(row, column);
      return Bf16Matrix{data, s.matrix.leading, s.matrix.transposed};
    };
    const auto product = [&](Steps at, const ProductBlock& b, const Args& mine, Pauses& pauses) {
      BF16* const rows = reinterpret_cast<BF16*>(mine.scratch);
      BF16* const columns = rows + bf16_packed(block.m, block.k);
      const i64 m_end = b.row + b.rows, n_end = b.column + b.columns;
      for (i64 n0 = b.column; n0 < n_end; n0 += block.n)
        for (i64 k0 = 0; k0 < k; k0 += block.k) {
          const i64 nn = std::min(block.n, n_end - n0), kk = std::min(block.k, k - k0);
          bf16_pack_right(matrix(right, at, k0, n0), {kk, nn}, columns);
          for (i64 m0 = b.row; m0 < m_end; m0 += block.m) {
            const i64 mm = std::min(block.m, m_end - m0);
            bf16_pack_left(matrix(left, at, m0, k0), {mm, kk}, rows);
            O* const out = args.output<O>() + at[2] + m0 * leading + n0;
            bf16_multiply(mm, nn, kk, rows, columns,
                          [&](const Bf16Square& r) { put_square(r, add || k0 > 0, out, leading); });
            pauses.after(mm * nn * kk / 400);
          }
        }
    };
    share_products(args, outer, {left.size, right.size, k}, work, [&](const Args& mine, Portion portion) {
      Pauses pauses(mine);
      run_nest(outer, [&](Steps at) {
        if (portion.takes_next()) product(at, portion.block(), mine, pauses);
      });
    });
  };
}

Runner prepare_tiled(const Call& call) {
  return call.out[0].dtype == bf16 ? prepare_tiled<BF16>(call) : prepare_tiled<float>(call);
}

// One of the plan's products, turned where the result lies transposed.
template <class T>
MatrixProduct<T> product_of(const Plan& p, const T* a, const T* b, T* c, bool add) {
  const ProductLines<T> left{.data = a, .step = p.a.leading, .summed = p.a.transposed};
  const ProductLines<T> right{.data = b, .step = p.b.leading, .summed = !p.b.transposed};
  const ProductRows<T> out{.data = c, .step = p.c.leading, .add = add};
  if (p.c.transposed) return {{p.n, p.m, p.k}, right, left, out};
  return {{p.m, p.n, p.k}, left, right, out};
}

Runner prepare_gemm(const Call& call) {
  if (call.in[0].dtype == bf16)
    return call.out[0].dtype == bf16 ? prepare_widened<BF16>(call) : prepare_widened<float>(call);
  return with_float(call.out[0].dtype, [&]<class T>() -> Runner {
    return [p = *product_plan(call), padding = Padding(call.out[0]), accumulate = call.accumulate](const Args& args) {
      const bool add = accumulate && !args.now.overwrite;
      if (!add) padding.clear(args.output<T>());
      const ProductSize size = p.c.transposed ? ProductSize{p.n, p.m, p.k} : ProductSize{p.m, p.n, p.k};
      share_products(args, p.outer, size, multiplied(p), [&](const Args& mine, Portion portion) {
        Pauses pauses(mine);
        run_nest(p.outer, [&](Steps at) {
          if (!portion.takes_next()) return;
          bool more = add;
          run_nest(p.inner, [&](Steps in) {
            const T *a = args.input<T>(0) + at[0] + in[0], *b = args.input<T>(1) + at[1] + in[1];
            multiply(block_of(product_of(p, a, b, args.output<T>() + at[2], more), portion.block()), &pauses);
            more = true;
          });
        });
      });
    };
  });
}

// Where the elements of every row, column, sum index and kept index lie.
struct Tables {
  std::vector<i64> a[4], b[4], c[4];
  i64 size(Group g) const { return i64(a[g].size()); }
};

Tables tables_of(const Call& call) {
  const Groups groups = product_axes(call);
  Tables t;
  for (const Group g : {rows, columns, summed, kept}) {
    Nest nest;
    for (const Axis& x : groups.axes[g]) add_loop(nest, x.size, {x.a, x.b, x.c});
    run_nest(nest, [&](Steps at) {
      t.a[g].push_back(at[0]);
      t.b[g].push_back(at[1]);
      t.c[g].push_back(at[2]);
    });
  }
  return t;
}

// f<T, O>(): elements of the operands and of the result.
template <class F>
Runner with_types(const Call& call, const F& f) {
  if (call.in[0].dtype == bf16)
    return call.out[0].dtype == bf16 ? f.template operator()<BF16, BF16>() : f.template operator()<BF16, float>();
  return with_float(call.out[0].dtype, [&]<class T>() { return f.template operator()<T, T>(); });
}

Runner prepare_packed(const Call& call) {
  return with_types(call, [&]<class T, class O>() -> Runner {
    using W = Wide<T>;
    return [t = tables_of(call), padding = Padding(call.out[0]), accumulate = call.accumulate](const Args& args) {
      const i64 m = t.size(rows), n = t.size(columns), k = t.size(summed);
      const ContractBlock block = contract_block(m, n, k);
      const bool add = accumulate && !args.now.overwrite;
      if (!add) padding.clear(args.output<O>());
      const int parts = parts_worth(args, double(t.size(kept)) * double(m * n * k) / multiplied_per_second);
      share(args, parts, [&](const Args& mine, int part) {
        W* pa = reinterpret_cast<W*>(mine.scratch);
        W* pb = pa + block.m * block.k;
        W* pc = pb + block.k * block.n;
        i64 next = 0;
        Pauses pauses(mine);
        for (std::size_t l = 0; l < t.a[kept].size(); ++l) {
          const T *a = args.input<T>(0) + t.a[kept][l], *b = args.input<T>(1) + t.b[kept][l];
          O* c = args.output<O>() + t.c[kept][l];
          for (i64 m0 = 0; m0 < m; m0 += block.m)
            for (i64 n0 = 0; n0 < n; n0 += block.n) {
              if (next++ % parts != part) continue;
              const i64 mm = std::min(block.m, m - m0), nn = std::min(block.n, n - n0);
              for (i64 k0 = 0; k0 < k; k0 += block.k) {
                const i64 kk = std::min(block.k, k - k0);
                for (i64 i = 0; i < mm; ++i)
                  for (i64 j = 0; j < kk; ++j) pa[i * kk + j] = a[t.a[rows][m0 + i] + t.a[summed][k0 + j]];
                for (i64 i = 0; i < kk; ++i)
                  for (i64 j = 0; j < nn; ++j) pb[i * nn + j] = b[t.b[summed][k0 + i] + t.b[columns][n0 + j]];
                gemm(false, false, mm, nn, kk, pa, kk, pb, nn, k0 > 0, pc, nn, &pauses);
              }
              for (i64 i = 0; i < mm; ++i)
                for (i64 j = 0; j < nn; ++j) {
                  O& to = c[t.c[rows][m0 + i] + t.c[columns][n0 + j]];
                  to = O(add ? to + pc[i * nn + j] : pc[i * nn + j]);
                }
            }
        }
      });
    };
  });
}

Runner prepare_reference(const Call& call) {
  return with_types(call, [&]<class T, class O>() -> Runner {
    return [t = tables_of(call), padding = Padding(call.out[0]), accumulate = call.accumulate](const Args& args) {
      const T *a = args.input<T>(0), *b = args.input<T>(1);
      const bool add = accumulate && !args.now.overwrite;
      if (!add) padding.clear(args.output<O>());
      for (std::size_t l = 0; l < t.a[kept].size(); ++l)
        for (std::size_t i = 0; i < t.a[rows].size(); ++i)
          for (std::size_t j = 0; j < t.a[columns].size(); ++j) {
            double sum = 0;
            for (std::size_t k = 0; k < t.a[summed].size(); ++k)
              sum += double(a[t.a[kept][l] + t.a[rows][i] + t.a[summed][k]]) *
                     double(b[t.b[kept][l] + t.b[columns][j] + t.b[summed][k]]);
            O& to = args.output<O>()[t.c[kept][l] + t.c[rows][i] + t.c[columns][j]];
            to = O(add ? double(to) + sum : sum);
          }
    };
  });
}

constexpr Kernel kernels[] = {
    {.name = "tiles", .accepts = &accepts_tiled, .prepare = &prepare_tiled, .shares = true},
    {.name = "gemm", .accepts = &accepts_gemm, .prepare = &prepare_gemm, .shares = true},
    {.name = "packed", .accepts = &accepts_packed, .prepare = &prepare_packed, .shares = true},
    {.name = "reference", .prepare = &prepare_reference}};

}  // namespace

std::span<const Kernel> contract_kernels() { return kernels; }

}  // namespace stretto

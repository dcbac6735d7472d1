#include "stretto/kernels/inner/product_plan.h"

#include <algorithm>
#include <limits>
#include <ranges>

#include "stretto/ops/contract.h"

namespace stretto {

ProductAxes product_axes(const Call& call) {
  const ContractAttrs& at = call.attrs<ContractAttrs>();
  const View &a = call.in[0], &b = call.in[1], &c = call.out[0];
  using enum ProductAxes::Group;
  DimSet dims[4];
  for (DimId d : at.over) dims[summed].push_back(d);
  for (DimId d : at.out) dims[contains(at.along, d) ? kept : contains(a.dims, d) ? rows : columns].push_back(d);
  ProductAxes groups;
  for (std::size_t g = 0; g < 4; ++g) {
    std::vector<ProductAxis>& axes = groups.axes[g];
    std::vector<ProductAxis> single;
    for (DimId d : dims[g]) {
      const i64 size = g == summed ? std::min(a.valid(d), b.valid(d)) : c.valid(d);  // padding takes no part
      if (size != 1) single.push_back({size, a.stride(d), b.stride(d), c.stride(d)});
    }
    std::stable_sort(single.begin(), single.end(),
                     [&](const ProductAxis& x, const ProductAxis& y) { return g == summed ? x.a > y.a : x.c > y.c; });
    for (const ProductAxis& x : single) {
      if (!axes.empty()) {
        ProductAxis& outer = axes.back();
        if (outer.a == x.a * x.size && outer.b == x.b * x.size && outer.c == x.c * x.size) {
          outer = {outer.size * x.size, x.a, x.b, x.c};
          continue;
        }
      }
      axes.push_back(x);
    }
    if (std::any_of(axes.begin(), axes.end(), [](const ProductAxis& x) { return x.size == 0; })) axes = {{.size = 0}};
  }
  return groups;
}

namespace {
// A row-major matrix, or the transpose of one; nothing when neither dim has a unit stride.
std::optional<ProductMatrix> matrix(i64 size_r, i64 stride_r, i64 size_c, i64 stride_c) {
  constexpr i64 most = std::numeric_limits<int>::max();
  if (size_r > most || size_c > most) return {};
  const auto plain = [&](i64 r, i64 sr, i64 c, i64 sc) -> i64 {  // leading dimension, or 0
    if (c > 1 && sc != 1) return 0;
    if (r <= 1) return std::max<i64>(1, c);
    return sr >= std::max<i64>(1, c) && sr <= most ? sr : 0;
  };
  if (const i64 ld = plain(size_r, stride_r, size_c, stride_c)) return ProductMatrix{false, ld};
  if (const i64 ld = plain(size_c, stride_c, size_r, stride_r)) return ProductMatrix{true, ld};
  return {};
}
}  // namespace

std::optional<ProductPlan> product_plan(const Call& call) {
  using enum ProductAxes::Group;
  const ProductAxes g = product_axes(call);
  std::optional<ProductPlan> best;
  const ProductAxis single;  // of size 1: a group need not give the product one of its own
  const ProductAxis* chosen[3] = {&single, &single, &single};
  const auto each = [&](ProductAxes::Group which, auto&& f) {
    for (const ProductAxis& x : std::views::reverse(g.axes[which])) f(x);
    f(single);
  };
  double total = 1;
  for (const auto& axes : g.axes)
    for (const ProductAxis& x : axes) total *= double(x.size);
  each(rows, [&](const ProductAxis& m) {
    each(columns, [&](const ProductAxis& n) {
      const auto c = matrix(m.size, m.c, n.size, n.c);
      if (!c) return;
      each(summed, [&](const ProductAxis& k) {
        const auto a = matrix(m.size, m.a, k.size, k.a), b = matrix(k.size, k.b, n.size, n.b);
        if (!a || !b) return;
        const double calls = k.size == 0 ? 0 : total / (double(m.size) * double(n.size) * double(k.size));
        if (best && best->calls <= calls) return;
        best = ProductPlan{.m = m.size, .n = n.size, .k = k.size, .a = *a, .b = *b, .c = *c, .calls = calls};
        chosen[rows] = &m, chosen[columns] = &n, chosen[summed] = &k;
      });
    });
  });
  if (!best) return {};
  for (const ProductAxis& x : g.axes[kept]) add_loop(best->outer, x.size, {x.a, x.b, x.c});
  for (const ProductAxes::Group which : {rows, columns, summed})
    for (const ProductAxis& x : g.axes[which])
      if (&x != chosen[which]) add_loop(which == summed ? best->inner : best->outer, x.size, {x.a, x.b, x.c});
  return best;
}

}  // namespace stretto

#include "stretto/ops/rename.h"

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {
namespace {
DimId renamed(const RenameAttrs& a, DimId d) {
  const std::optional<int> i = find(a.from, d);
  return i ? a.to[*i] : d;
}
}  // namespace

Tensor rename(Tensor x, const Dim& from, const Dim& to) { return rename(x, std::vector<Rename>{{from, to}}); }

Tensor rename(Tensor x, const std::vector<Rename>& pairs) {
  Builder& b = builder_of("rename", {x});
  RenameAttrs a;
  for (const Rename& r : pairs) {
    const DimId from = rules::dim_of("rename", x, r.from);
    if (contains(a.from, from))
      throw Error("rename", "dim '{}' of {} is renamed twice", r.from.name, x.str()).hint("name it once");
    if (r.from.size != r.to.size || r.from.valid() != r.to.valid())
      throw Error("rename", "{} cannot become {}: the sizes differ (in {})", r.from.str(), r.to.str(), x.str())
          .hint("make the new dim with {}.like(\"{}\"), or slice first", r.from.name, r.to.name);
    const DimId to = b.intern(r.to);
    if (to == from) continue;
    a.from.push_back(from);
    a.to.push_back(to);
  }
  return a.from.empty() ? x : b.emit(rename_op, {x}, std::move(a));
}

constinit const Op rename_op{
    .name = "rename",
    .infer =
        [](const OpCall& c) {
          Type t = c.in(0);
          for (DimId& d : t.dims) d = renamed(c.attrs<RenameAttrs>(), d);
          return std::vector<Type>{t};
        },
    .vjp =
        [](const Vjp& v) {
          const RenameAttrs a = v.attrs<RenameAttrs>();
          return std::vector{v.builder.emit(rename_op, {v.grad[0]}, RenameAttrs{.from = a.to, .to = a.from})};
        },
    .spread = rules::linear,
    .cost = rules::free,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 4}, b2 = b.like("b2"), c{"c", 3};
          e.add(rename(e.real({a, b}), b, b2));
          e.add(rename(e.real({a, c, b}), {{a, c}, {c, a}}));
        },
    .view = [](const OpCall& c, int) { return rules::in_order(c.in(0).dims); },
    .layout_change = true,
};

}  // namespace stretto

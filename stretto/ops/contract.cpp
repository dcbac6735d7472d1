#include "stretto/ops/contract.h"

#include <algorithm>

#include "stretto/base/text.h"
#include "stretto/ops/cast.h"
#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {
namespace {

const Dim* named(const Dims& dims, const std::string& name) {
  const auto it = std::find_if(dims.begin(), dims.end(), [&](const Dim& d) { return d.name == name; });
  return it == dims.end() ? nullptr : &*it;
}

// The ids of dims that both operands must have; `what` is the argument's name in messages.
DimSet shared(Builder& builder, std::string_view what, Tensor a, Tensor b, const Dims& wanted) {
  DimSet ids;
  for (const Dim& d : wanted) {
    for (const Tensor& t : {a, b}) {
      const Dims have = t.dims();
      const Dim* found = named(have, d.name);
      if (!found) {
        std::vector<std::string> names;
        for (const Dim& h : have) names.push_back(h.name);
        const std::optional<std::string> near = nearest(d.name, names);
        Error e("contract", "dim '{}' is named in {} but {} lacks it: {} times {}", d.name, what, t.str(), a.str(),
                b.str());
        if (near) throw std::move(e).hint("did you mean '{}'?", *near);
        throw std::move(e).hint("rename the dim that corresponds to '{}', or leave it out of {}", d.name, what);
      }
      if (found->size != d.size)
        throw Error("contract", "dim '{}' is {} in {} and {} in {}", d.name, found->size, t.str(), d.size, what)
            .hint("pass the Dim the operands were made with, or rename one of the two");
    }
    const DimId id = builder.intern(d);
    if (contains(ids, id)) throw Error("contract", "dim '{}' is named twice in {}", d.name, what).hint("name it once");
    ids.push_back(id);
  }
  return ids;
}

std::vector<Type> infer(const OpCall& c) {
  const ContractAttrs& attrs = c.attrs<ContractAttrs>();
  const Type &a = c.in(0), &b = c.in(1);
  if (a.dtype != b.dtype)
    throw Error("contract", "{} is {} and {} is {}", c.describe(0), name_of(a.dtype), c.describe(1), name_of(b.dtype))
        .hint("cast one of them: cast(x, {})", name_of(a.dtype));
  if (!is_float(a.dtype))
    throw Error("contract", "{} and {} hold integers", c.describe(0), c.describe(1))
        .hint("cast them first: cast(x, f32)");
  DimSet expect;
  for (DimId d : a.dims) {
    const bool both = contains(b.dims, d), over = contains(attrs.over, d), along = contains(attrs.along, d);
    const std::string& name = c.graph.dim(d).name;
    if (over && along)
      throw Error("contract", "dim '{}' is named in over and in along: {} times {}", name, c.describe(0), c.describe(1))
          .hint("name it in over to sum it away, in along to keep it");
    if (both && !over && !along)
      throw Error("contract", "dim '{}' is in both operands and named in neither over nor along: {} times {}", name,
                  c.describe(0), c.describe(1))
          .hint("sum over it: contract(a, b, {0}), keep it: along({0}), or rename it in one operand", name);
    if (!over) expect.push_back(d);
  }
  for (DimId d : b.dims)
    if (!contains(a.dims, d)) expect.push_back(d);
  STRETTO_ASSERT(
      expect.size() == attrs.out.size() && std::is_permutation(expect.begin(), expect.end(), attrs.out.begin()),
      "out lists the dims that are left");
  return {{attrs.result.empty() ? a.dtype : wide(a.dtype), attrs.out}};
}

ContractAttrs attrs_of(Tensor a, Tensor b, const Dims& over, const Along& along) {
  Builder& builder = builder_of("contract", {a, b});
  for (const Tensor& t : {a, b}) t.type();  // an empty one is an error here
  if (over.empty())
    throw Error("contract", "no dim to sum over: {} times {}", a.str(), b.str())
        .hint("name the dim in over; for a product without a sum use a * b");
  const DimSet summed = shared(builder, "over", a, b, over), kept = shared(builder, "along", a, b, along.dims);
  DimSet out = without(a.type().dims, summed);
  out = joined(out, without(b.type().dims, summed));
  return {summed, kept, out, {}};
}

// Along a dim that only one operand has, and that is kept, every element has its own rows.
std::optional<Attrs> in_stripes(const OpCall& c, DimId whole, const DimSet& to, i64 rows) {
  ContractAttrs at = c.attrs<ContractAttrs>();
  const bool first = contains(c.in(0).dims, whole);
  if (first == contains(c.in(1).dims, whole) || !contains(at.out, whole)) return {};
  i64 n = 1, k = 1;
  for (DimId d : at.over) k *= c.graph.size(d);
  for (DimId d : at.out)
    if (!contains(at.along, d) && contains(c.in(first ? 1 : 0).dims, d)) n *= c.graph.size(d);
  if (!alike_by_rows(rows, n, k, c.in(0).dtype)) return {};
  const auto place = at.out.begin() + position(at.out, whole);
  at.out.insert(at.out.erase(place), to.begin(), to.end());
  return Attrs(at);
}

}  // namespace

bool alike_by_rows(i64 rows, i64 n, i64 k, DType dtype) {
  const auto least = [](i64 size, i64 block) { return size % block == 0 ? std::min(size, block) : size % block; };
  if (dtype == bf16) {
    const ContractBlock most = widened_block(1 << 30, 1 << 30, 1 << 30);
    if (most.m % rows != 0 && rows % most.m != 0) return false;
    rows = std::min(rows, most.m), n = least(n, most.n), k = least(k, most.k);
  }
  return rows % 16 == 0 && n % (dtype == f64 ? 16 : 8) == 0 && double(rows) * double(n) * double(k) > 1e6;
}

Tensor contract(Tensor a, Tensor b, Dims over, Along along) {
  return builder_of("contract", {a, b}).emit(contract_op, {a, b}, attrs_of(a, b, over, along));
}

Tensor contract_wide(Tensor a, Tensor b, const Dims& over, const Along& along) {
  if (a.dtype() != b.dtype()) a = cast(a, wide(a.dtype())), b = cast(b, wide(b.dtype()));
  ContractAttrs attrs = attrs_of(a, b, over, along);
  if (a.dtype() == bf16) attrs.result = {f32};
  return builder_of("contract", {a, b}).emit(contract_op, {a, b}, attrs);
}

Tensor contract_into_order(Tensor a, Tensor b, const DimSet& over, const DimSet& along, const DimSet& out) {
  return builder_of("contract", {a, b}).emit(contract_op, {a, b}, ContractAttrs{over, along, out, {}});
}

constinit const Op contract_op{
    .name = "contract",
    .infer = infer,
    .vjp =
        [](const Vjp& v) {
          const ContractAttrs at = v.attrs<ContractAttrs>();
          const DimSet a = v.in[0].type().dims, b = v.in[1].type().dims;
          const Tensor g = cast(v.grad[0], v.in[0].dtype());  // it has another type where the result was widened
          return std::vector{v.wanted[0] ? contract_into_order(g, v.in[1], without(b, a), at.along, a) : Tensor{},
                             v.wanted[1] ? contract_into_order(v.in[0], g, without(a, b), at.along, b) : Tensor{}};
        },
    .spread =
        [](const OpCall& c) {
          Spread s{.linear = {0, 1}};
          for (DimId d : c.attrs<ContractAttrs>().over) s.reduce.push_back({d, Reduce::sum});
          return s;
        },
    .cost =
        [](const OpCall& c) {
          const ContractAttrs& at = c.attrs<ContractAttrs>();
          Cost cost = c.streaming(0);
          ProductShape p;
          for (DimId d : at.over) p.k *= c.graph.size(d);
          for (DimId d : at.out)
            (contains(at.along, d) ? p.batches : contains(c.in(0).dims, d) ? p.m : p.n) *= c.graph.size(d);
          cost.flops = 2.0 * c.elements(c.out()) * p.k;
          cost.shape = p;
          return cost;
        },
    .examples =
        [](Examples& e) {
          const Dim b{"b", 2}, s{"s", 3}, m{"m", 4}, h{"h", 2}, d{"d", 3}, n{"n", 5}, one{"one", 1};
          e.add(contract(e.real({b, s, m}), e.real({m, n}), m));
          e.add(contract(e.real({b, s, m}), e.real({n, m}), m));
          e.add(contract(e.real({b, s, h, d}), e.real({h, d, m}), {h, d}));
          e.add(contract(e.real({h, b, m}), e.real({h, m, n}), m, along(h)));
          e.add(contract(e.real({b, s, h, d}), e.real({n, b, d, h}), d, along({b, h})));
          e.add(contract(e.real({b, m}), e.real({m}), m));
          e.add(contract(e.real({m}), e.real({m}), m));
          e.add(contract(e.real({one, m}), e.real({m, d}), m));
          e.add(contract(e.real({b, one}), e.real({one, d}), one));
          const Tensor x = e.real({s, m});
          e.add(contract(x, x, {s, m}));
          e.add(contract(x, x, m, along(s)));
          const Dim padded = Dim{"padded", 5}.padded(4);
          e.add(contract(e.real({b, padded}), e.real({padded, n}), padded));
          e.add(contract_wide(e.real({b, s, m}), e.real({m, n}), m));
        },
    .scratch =
        [](const OpCall& c) {
          // Room for one packed block of each operand and of the result, used by layouts without a unit stride.
          const ContractAttrs& at = c.attrs<ContractAttrs>();
          i64 m = 1, n = 1, k = 1;
          for (DimId d : at.over) k *= c.graph.size(d);
          for (DimId d : at.out) {
            if (contains(at.along, d)) continue;
            (contains(c.in(0).dims, d) ? m : n) *= c.graph.size(d);
          }
          if (c.in(0).dtype == bf16)
            return std::max({contract_block(m, n, k).bytes(f32), widened_block(m, n, k).bytes(f32),
                             tiled_block(m, n, k, c.out().dtype).bytes()});
          return contract_block(m, n, k).bytes(c.out().dtype);
        },
    .accumulates = true,
    .in_stripes = in_stripes,
    .widened =
        [](const Attrs& a) {
          ContractAttrs wide = a.as<ContractAttrs>();
          wide.result = {f32};
          return Attrs(wide);
        },
    .costly = Costly::product,
};

}  // namespace stretto

#include "stretto/shard/epilogue.h"

#include <algorithm>

#include "stretto/ops/add.h"
#include "stretto/ops/all_gather.h"
#include "stretto/ops/all_reduce.h"
#include "stretto/ops/block.h"
#include "stretto/ops/cast.h"
#include "stretto/ops/compare.h"
#include "stretto/ops/index.h"
#include "stretto/ops/iota.h"
#include "stretto/ops/permute.h"
#include "stretto/ops/reduce_scatter.h"
#include "stretto/ops/where.h"

namespace stretto {
namespace {

bool has(const AxisNames& list, const std::string& axis) {
  return std::find(list.begin(), list.end(), axis) != list.end();
}

AxisNames minus(const AxisNames& list, const AxisNames& gone) {
  AxisNames rest;
  for (const std::string& a : list)
    if (!has(gone, a)) rest.push_back(a);
  return rest;
}

// In the mesh's order.
AxisNames united(const Mesh& mesh, std::initializer_list<const AxisNames*> lists) {
  AxisNames all;
  for (const Axis& a : mesh)
    for (const AxisNames* l : lists)
      if (has(*l, a.name) && !has(all, a.name)) all.push_back(a.name);
  return all;
}

int ranks(const Mesh& mesh, const AxisNames& axes) {
  int n = 1;
  for (const std::string& a : axes) n *= mesh.extent(a);
  return n;
}

// They stand in the order of parameters.
auto gradients_of(const Sharded& s, ParamId param) {
  return std::ranges::equal_range(s.gradients, param, {}, &ShardedGradient::param);
}

AxisNames pending_of(const Sharded& s, ParamId param) {
  AxisNames all;
  for (const ShardedGradient& g : gradients_of(s, param)) all = united(s.mesh, {&all, &g.pending});
  return all;
}

bool trained(const Sharded& s, ParamId param) { return !gradients_of(s, param).empty(); }

// What has to happen to one parameter's accumulated gradient: reduce-scatter, or cut, over what the state is cut over
// beyond the accumulator; then all-reduce.
struct Reduction {
  AxisNames scatter;  // all of it is pending
  AxisNames before;   // all-reduce before a cut: only some of it is
  AxisNames rest;     // all-reduce after
};

Reduction reduction_of(const Sharded& s, ParamId param) {
  const ShardedParam& p = s.params[param];
  const AxisNames pending = pending_of(s, param), cut = minus(p.state, p.gradients);
  Reduction r;
  if (std::all_of(cut.begin(), cut.end(), [&](const auto& a) { return has(pending, a); }))
    r.scatter = cut;
  else
    std::copy_if(cut.begin(), cut.end(), std::back_inserter(r.before), [&](const auto& a) { return has(pending, a); });
  r.rest = minus(minus(pending, r.scatter), r.before);
  return r;
}

}  // namespace

Tensor only_first(Tensor x, const Mesh& mesh, const AxisNames& axes) {
  for (const std::string& a : axes) {
    const Dim own{.name = "@" + a, .size = 1, .logical = mesh.extent(a), .axes = {a}};
    x = where(equal(index(iota(*x.builder, own), own, 0), 0), x, 0);
  }
  return x;
}

Dims dims_of(const Sharded& s, const Type& t) { return s.graph.graph.named(t.dims); }

Tensor reduced_gradient(std::span<const Tensor> accumulators, const Sharded& s, ParamId param) {
  const AxisNames pending = pending_of(s, param);
  const auto gradients = gradients_of(s, param);
  Tensor total;
  for (std::size_t k = 0; k < accumulators.size(); ++k) {
    const AxisNames& own = gradients[k % gradients.size()].pending;
    const Tensor one = only_first(accumulators[k], s.mesh, minus(pending, own));
    total = total ? total + one : one;
  }
  const Reduction r = reduction_of(s, param);
  const DType type = total.dtype();
  if (s.reduce == bf16 && !(r.scatter.empty() && r.before.empty() && r.rest.empty())) total = cast(total, bf16);
  Builder& b = *total.builder;
  const DimId flat = b.intern(dims_of(s, s.params[param].updated))[0];
  const bool whole = s.params[param].gradients.empty();
  if (!r.scatter.empty())
    total = whole ? reduce_scatter_flat(total, flat, r.scatter)
                  : reduce_scatter(total, total.type().dims[0], flat, r.scatter);
  else if (total.type().dims != DimSet{flat})
    total = whole ? block_flat(all_reduce(total, r.before), flat)
                  : block(all_reduce(total, r.before), total.type().dims[0], flat);
  return cast(all_reduce(total, r.rest), type);
}

AxisNames summed_as_it_is(const Sharded& s, ParamId param) {
  const ShardedParam& p = s.params[param];
  return minus(p.state, p.gradients).empty() && s.reduce != bf16 ? pending_of(s, param) : AxisNames{};
}

AxisNames norm_axes(const Sharded& s) {
  // Asked for every parameter: an axis is looked for only until one parameter has it.
  AxisNames all;
  for (const Axis& a : s.mesh)
    if (std::any_of(s.params.begin(), s.params.end(),
                    [&](const ShardedParam& p) { return has(p.split, a.name) || has(p.state, a.name); }))
      all.push_back(a.name);
  return all;
}

Tensor counted_square(Tensor square, const Sharded& s, ParamId param) {
  const ShardedParam& p = s.params[param];
  return only_first(square, s.mesh, minus(minus(norm_axes(s), p.split), p.state));
}

Tensor part_to_update(Tensor stored, const Sharded& s, ParamId param) {
  const ShardedParam& p = s.params[param];
  const DimId flat = stored.builder->intern(dims_of(s, p.updated))[0];
  if (p.params == p.state && !p.params.empty()) return stored;
  return p.params.empty() ? block_flat(stored, flat) : block(stored, stored.type().dims[0], flat);
}

Tensor stored_again(Tensor part, const Sharded& s, ParamId param) {
  const ShardedParam& p = s.params[param];
  if (p.stored.dims == p.updated.dims) return part;
  const DimSet to = part.builder->intern(dims_of(s, p.stored));
  return p.params.empty() ? all_gather_flat(part, to, p.state)
                          : all_gather(part, part.type().dims[0], to[0], minus(p.state, p.params));
}

Dims whole_dims(const Sharded& s, ParamId param, const Dims& apart) {
  Dims all = dims_of(s, s.params[param].type);
  for (Dim& d : all) {
    const bool stays = std::any_of(apart.begin(), apart.end(), [&](const Dim& a) { return a.name == d.name; });
    if (d.axes.empty() || stays) continue;
    d.name += "/whole";
    d.size *= ranks(s.mesh, d.axes);
    if (d.logical == d.size) d.logical = 0;
    d.axes.clear();
  }
  return all;
}

Tensor whole_again(Tensor part, const Sharded& s, ParamId param, const Dims& apart) {
  const ShardedParam& p = s.params[param];
  const Dims own = dims_of(s, p.type), whole = whole_dims(s, param, apart);
  Builder& b = *part.builder;
  if (!p.state.empty()) part = all_gather_flat(part, b.intern(own), p.state);
  for (std::size_t i = 0; i < own.size(); ++i)
    if (own[i] != whole[i]) part = all_gather(part, b.intern(own[i]), b.intern(whole[i]), own[i].axes);
  return part;
}

Tensor part_of_whole(Tensor x, const Sharded& s, ParamId param, const Dims& apart) {
  const ShardedParam& p = s.params[param];
  const Dims own = dims_of(s, p.type), whole = whole_dims(s, param, apart);
  Builder& b = *x.builder;
  x = permute(x, whole);
  for (std::size_t i = 0; i < own.size(); ++i)
    if (own[i] != whole[i]) x = block(x, b.intern(whole[i]), b.intern(own[i]));
  return p.state.empty() ? x : block_flat(x, b.intern(dims_of(s, p.updated))[0]);
}

std::vector<Collective> per_step_collectives(const Sharded& s) {
  const Graph& g = s.graph.graph;
  std::vector<Collective> all;
  const auto add = [&](std::string kind, const AxisNames& axes, const Type& t, std::string cause) {
    if (!axes.empty())
      all.push_back({.kind = std::move(kind),
                     .axes = axes,
                     .ranks = ranks(s.mesh, axes),
                     .elements = g.elements(t),
                     .bytes = g.bytes(t),
                     .cause = std::move(cause),
                     .per_step = true});
  };
  for (ParamId i : s.params.ids()) {
    if (!trained(s, i)) continue;
    const ShardedParam& p = s.params[i];
    const Reduction r = reduction_of(s, i);
    const DType wire = s.reduce == bf16 ? bf16 : wide(p.type.dtype);
    const Type gradient{wire, p.type.dims};
    add("reduce_scatter", r.scatter, gradient, "gradient of " + p.name);
    add("all_reduce", r.before, gradient, "gradient of " + p.name);
    add("all_reduce", r.rest, Type{wire, p.updated.dims}, "gradient of " + p.name);
  }
  for (ParamId i : s.params.ids())
    if (const ShardedParam& p = s.params[i]; trained(s, i))
      add("all_gather", minus(p.state, p.params), Type{p.type.dtype, p.updated.dims}, "new values of " + p.name);
  for (OutputId k : s.outputs.ids())
    add("all_reduce", s.outputs[k], g.type(s.graph.outputs[k].value), "output " + s.graph.outputs[k].name);
  if (const AxisNames axes = norm_axes(s); !axes.empty() && !s.gradients.empty())
    all.push_back({.kind = "all_reduce",
                   .axes = axes,
                   .ranks = ranks(s.mesh, axes),
                   .elements = std::ssize(s.params.list()),
                   .bytes = sizeof(double) * s.params.size(),
                   .cause = "squared norms",
                   .per_step = true});
  return all;
}

}  // namespace stretto

#include "stretto/compile/inner/chunks.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "stretto/cost/collective.h"
#include "stretto/cost/kernel.h"
#include "stretto/ir/collective.h"
#include "stretto/ir/ids.h"
#include "stretto/ops/all_gather.h"
#include "stretto/ops/reduce_scatter.h"
#include "stretto/ops/stripe.h"

namespace stretto {
namespace {

constexpr int most_parts = 16;

// A collective whose operand or result has all ranks' rows along one dim, and a rank's along another.
struct RowDims {
  DimId whole, own;
  bool gathers = false;
};
std::optional<RowDims> rows_of(const Node& n) {
  const bool gathers = n.op->collective_kind == CollectiveKind::gather;
  if (!gathers && n.op->collective_kind != CollectiveKind::scatter) return {};
  const RankBlocksAttrs& a = n.attrs.as<RankBlocksAttrs>();
  if (a.flat) return {};
  return RowDims{a.whole[0], a.part, gathers};
}

struct RowCut {
  RowDims rows;
  int parts = 1;
  std::set<NodeId> products;  // and, before a reduce_scatter, what adds them up
};

// Which collectives are cut, with which products, into how many parts.
class CutPlan {
 public:
  CutPlan(const Sharded& s, const ChunkOptions& o) : s_(s), g_(s.graph.graph), o_(o), readers_(g_.nodes.size()) {
    for (NodeId id : node_ids(g_))
      for (Value v : g_.node(id).operands) readers_[v.node].push_back(id);
    const auto keep = [&](Value v) { kept_.insert(v.node); };
    for (Value v : g_.outputs) keep(v);
    for (const StepGraph::Output& x : s.graph.outputs) keep(x.value);
    for (const StepGraph::Grad& x : s.graph.gradients) keep(x.value);
  }

  std::map<NodeId, RowCut> run() {
    for (NodeId id : node_ids(g_))
      if (const std::optional<RowDims> rows = rows_of(g_.node(id))) look(id, *rows);
    return std::move(cuts_);
  }

 private:
  void look(NodeId id, RowDims rows) {
    const i64 own = g_.size(rows.own);
    if (g_.size(rows.whole) % own != 0 || g_.dim(rows.whole).valid() != g_.size(rows.whole)) return;
    RowCut best{.rows = rows};
    const double to_hide = collective_seconds_in(id, rows, 1);
    double least = to_hide, products = 0;  // the time of all that can be cut; a gain must be worth its kernels
    for (int parts = 2; parts <= most_parts && own % parts == 0; parts *= 2) {
      RowCut c{.rows = rows, .parts = parts, .products = products_of(id, rows, own / parts)};
      if (c.products.empty()) continue;
      const double cut = product_seconds_in(c, 1);
      if (products == 0) least += products = cut;
      const double carry = collective_seconds_in(id, rows, parts), make = product_seconds_in(c, parts);
      const double all = carry + (parts - 1) * std::max(carry, make) + make + (products - cut);
      if (all < least - 0.05 * to_hide - 0.005 * products) best = std::move(c), least = all;
    }
    if (best.parts == 1) return;
    taken_.insert(best.products.begin(), best.products.end());
    cuts_.emplace(id, std::move(best));
  }

  // Would it have the same bits if it were made in parts of so many rows?
  bool product(NodeId id, DimId whole, i64 rows) const {
    const Node& n = g_.node(id);
    if (!n.op->in_stripes || taken_.contains(id)) return false;
    return n.op->in_stripes({g_, n}, whole, {}, rows).has_value();
  }
  bool beside(NodeId a, NodeId b) const {
    return g_.node(a).piece == g_.node(b).piece && g_.node(a).backward == g_.node(b).backward;
  }

  std::set<NodeId> products_of(NodeId id, RowDims rows, i64 size) const {
    std::set<NodeId> all;
    if (rows.gathers) {
      for (NodeId reader : readers_[id])
        if (beside(reader, id) && product(reader, rows.whole, size)) all.insert(reader);
    } else if (!add_makers(g_.node(id).operands[0], id, rows.whole, size, all)) {
      all.clear();
    }
    return all;
  }
  // Adds the products whose sum a value is, and what adds them up. False: somebody else reads one of them, or there is
  // none.
  bool add_makers(Value v, NodeId reader, DimId whole, i64 size, std::set<NodeId>& all) const {
    const Node& n = g_.node(v);
    if (kept_.contains(v.node) || !beside(v.node, reader) || !contains(g_.type(v).dims, whole)) return false;
    if (!std::all_of(readers_[v.node].begin(), readers_[v.node].end(), [&](NodeId r) { return r == reader; }))
      return false;
    bool found = product(v.node, whole, size);
    if (!found && n.op->pointwise && n.op->value && !n.op->key)
      for (Value operand : n.operands) found = add_makers(operand, v.node, whole, size, all) || found;
    if (found) all.insert(v.node);
    return found;
  }

  double collective_seconds_in(NodeId id, RowDims rows, int parts) const {
    const Node& n = g_.node(id);
    CollectiveShape s = shape_of(g_, n, s_.mesh);
    const DimSet& box = rows.gathers ? g_.type(n.operands[0]).dims : n.results[0].dims;
    s.sizes[position(box, rows.own)] /= parts;
    return collective_seconds(s, o_.cluster, group_of(s_.mesh, 0, s.axes));
  }
  // Of one part.
  double product_seconds_in(const RowCut& c, int parts) const {
    double sum = 0;
    for (NodeId id : c.products) {
      const Node& n = g_.node(id);
      if (!n.op->in_stripes) continue;
      KernelWork w{.cost = n.op->cost({g_, n}), .of_bf16 = g_.type(n.operands[0]).dtype == bf16};
      w.cost.flops /= parts, w.cost.written /= parts, w.cost.read = 0;
      for (Value v : n.operands) {
        const bool cut = contains(g_.type(v).dims, c.rows.whole);
        w.cost.read += double(g_.bytes(g_.type(v))) / (cut ? parts : 1);
        if (cut)
          (v == n.operands[0] ? std::get<ProductShape>(w.cost.shape).m : std::get<ProductShape>(w.cost.shape).n) /=
              parts;
      }
      sum += kernel_seconds(w, o_.cluster.machine);
    }
    return sum;
  }

  const Sharded& s_;
  const Graph& g_;
  const ChunkOptions& o_;
  IdVector<NodeId, std::vector<NodeId>> readers_;
  std::set<NodeId> kept_;   // read from outside of the graph
  std::set<NodeId> taken_;  // by another collective
  std::map<NodeId, RowCut> cuts_;
};

// The graph anew, with the cuts.
class Cutting {
 public:
  Cutting(const StepGraph& from, const std::map<NodeId, RowCut>& cuts) : from_(from), g_(from.graph), cuts_(cuts) {
    to_.graph.dims = g_.dims;
    to_.graph.scopes = g_.scopes;
    for (const auto& [id, cut] : cuts)
      for (NodeId product : cut.products) cut_of_[product] = id;
  }

  StepGraph run() {
    for (NodeId id : node_ids(g_)) step(id);
    StepGraph out = from_;
    for (Value& v : out.params) v = made_.at(v);
    for (Value& v : out.inputs) v = made_.at(v);
    for (Value& v : out.scalars) v = made_.at(v);
    for (StepGraph::Output& o : out.outputs) o.value = made_.at(o.value);
    for (StepGraph::Grad& d : out.gradients) d.value = made_.at(d.value);
    for (Value v : g_.outputs) to_.graph.outputs.push_back(made_.at(v));
    out.graph = std::move(to_.graph);
    return out;
  }

 private:
  void step(NodeId id) {
    const Node& n = g_.node(id);
    to_.scope = n.scope, to_.force_piece = n.piece, to_.backward = n.backward;
    if (const auto cut = cuts_.find(id); cut != cuts_.end())
      return cut->second.rows.gathers ? gather(id, cut->second) : scatter(id, cut->second);
    const auto product = cut_of_.find(id);
    if (product == cut_of_.end()) return copy(id);
    const RowCut& c = cuts_.at(product->second);
    if (c.rows.gathers) enter(id, weave(parts_of(id, c), stripe_dims(c), c.rows.whole));
  }
  void enter(NodeId id, Tensor t) { made_[{id, 0}] = t.value; }
  void copy(NodeId id) {
    Node n = g_.node(id);
    for (Value& v : n.operands) v = made_.at(v);
    to_.graph.nodes.push_back(std::move(n));
    for (Value v : values_of(g_, id)) made_[v] = {last_node(to_.graph), v.result};
  }
  Tensor made(Value v) { return {&to_, made_.at(v)}; }

  DimId rows_dim(const RowCut& c) {
    const i64 rows = g_.size(c.rows.own) / c.parts;
    return to_.intern(Dim{fmt::format("{}/rows{}", g_.dim(c.rows.whole).name, rows), rows});
  }
  DimSet stripe_dims(const RowCut& c) {
    const i64 ranks = g_.size(c.rows.whole) / g_.size(c.rows.own);
    return {to_.intern(Dim{fmt::format("{}/ranks{}", g_.dim(c.rows.whole).name, ranks), ranks}), rows_dim(c)};
  }

  void gather(NodeId id, const RowCut& c) {
    const Node& n = g_.node(id);
    std::vector<Tensor> parts;
    for (int i = 0; i < c.parts; ++i) {
      const Tensor own = stripe(made(n.operands[0]), c.rows.own, {rows_dim(c)}, i);
      parts.push_back(all_gather_rows(own, rows_dim(c), stripe_dims(c)[0], n.attrs.as<RankBlocksAttrs>().axes));
      part_[{{id, 0}, c.rows.whole, c.rows.own, c.parts, i}] = parts.back();
    }
    enter(id, weave(parts, stripe_dims(c), c.rows.whole));
  }
  void scatter(NodeId id, const RowCut& c) {
    const Node& n = g_.node(id);
    std::vector<Tensor> parts;
    for (int i = 0; i < c.parts; ++i)
      parts.push_back(reduce_scatter_rows(part(n.operands[0], c, i), stripe_dims(c)[0], rows_dim(c),
                                          n.attrs.as<RankBlocksAttrs>().axes));
    enter(id, weave(parts, {rows_dim(c)}, c.rows.own));
  }

  std::vector<Tensor> parts_of(NodeId id, const RowCut& c) {
    std::vector<Tensor> parts;
    for (int i = 0; i < c.parts; ++i) parts.push_back(part({id, 0}, c, i));
    return parts;
  }
  // The i-th stripe of a value: made as such, or seen in the value.
  Tensor part(Value v, const RowCut& c, int i) {
    const Stripe key{v, c.rows.whole, c.rows.own, c.parts, i};
    if (const auto known = part_.find(key); known != part_.end()) return known->second;
    const Node& n = g_.node(v);
    if (!c.products.contains(v.node)) return part_[key] = stripe(made(v), c.rows.whole, stripe_dims(c), i);
    std::vector<Tensor> operands;
    for (Value o : n.operands) operands.push_back(contains(g_.type(o).dims, c.rows.whole) ? part(o, c, i) : made(o));
    Attrs attrs = n.attrs;
    if (n.op->in_stripes)
      attrs = *n.op->in_stripes({g_, n}, c.rows.whole, stripe_dims(c), g_.size(c.rows.own) / c.parts);
    return part_[key] = to_.emit(*n.op, std::move(operands), std::move(attrs));
  }

  const StepGraph& from_;
  const Graph& g_;
  const std::map<NodeId, RowCut>& cuts_;
  std::map<NodeId, NodeId> cut_of_;  // products: the collective that they are cut for
  Builder to_;
  std::map<Value, Value> made_;
  using Stripe = std::tuple<Value, DimId, DimId, int, int>;  // of a value: all ranks' rows, a rank's; parts, which
  std::map<Stripe, Tensor> part_;
};

}  // namespace

Sharded cut_products(Sharded s, const ChunkOptions& options) {
  const std::map<NodeId, RowCut> cuts = CutPlan(s, options).run();
  if (cuts.empty()) {
    s.warnings.push_back(fault("parallel",
                               "chunks are for tensor parallelism with sequence = true, and for links that take time",
                               "overlap = \"chunks\": no product is worth cutting into parts")
                             .about({"parallel.overlap"}));
    return s;
  }
  std::size_t number = 0;  // collectives are listed in the order of their nodes
  for (NodeId id : node_ids(s.graph.graph)) {
    if (!s.graph.graph.node(id).op->collective) continue;
    if (const auto cut = cuts.find(id); cut != cuts.end()) s.collectives.at(number).parts = cut->second.parts;
    ++number;
  }
  STRETTO_ASSERT(number == s.collectives.size(), "every collective is listed");
  s.graph = Cutting(s.graph, cuts).run();
  refuse(verify(s.graph));
  return s;
}

}  // namespace stretto

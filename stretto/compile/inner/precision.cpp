#include "stretto/compile/inner/precision.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "stretto/ir/op.h"
#include "stretto/ops/cast.h"
#include "stretto/ops/constant.h"

namespace stretto {
namespace {

bool has_bf16(const Graph& g) {
  return std::any_of(g.nodes.begin(), g.nodes.end(), [](const Node& n) {
    return std::any_of(n.results.begin(), n.results.end(), [](const Type& t) { return t.dtype == bf16; });
  });
}

// What stands for a value of the old graph.
struct Made {
  Tensor as_it_is;  // of the old type; of a bf16 value that is made in f32: only if somebody reads it in bf16
  Tensor wide;      // of a bf16 value that a pointwise op makes: what it was rounded from
  Tensor exact;     // the same for other ops, where it was asked for
};

class Precision {
 public:
  explicit Precision(const StepGraph& from)
      : from_(from), g_(from.graph), made_(g_.nodes.size()), exact_(g_.nodes.size()), rounded_(g_.nodes.size()) {
    b_.graph.dims = g_.dims;
    b_.graph.scopes = g_.scopes;
    for (NodeId id : made_.ids()) {
      made_[id].resize(g_.node(id).results.size());
      exact_[id].resize(made_[id].size());
      rounded_[id].resize(made_[id].size());
    }
    for (const StepGraph::Output& o : from.outputs) ask_exact(o.value);
    for (const StepGraph::Grad& d : from.gradients) ask_exact(d.value);
    find_rounded();
  }

  StepGraph run() {
    for (NodeId id : made_.ids()) {
      stand_at(g_.node(id));
      in_f32(g_.node(id)) ? make_wide(id) : make_as_it_is(id);
    }
    StepGraph to;
    const auto moved = [&]<class I>(const IdVector<I, Value>& values, IdVector<I, Value>& all) {
      for (Value v : values) all.push_back(made(v).as_it_is.value);
    };
    moved(from_.params, to.params), moved(from_.inputs, to.inputs), moved(from_.scalars, to.scalars);
    for (StepGraph::Output o : from_.outputs) o.value = best(o.value).value, to.outputs.push_back(std::move(o));
    for (StepGraph::Grad d : from_.gradients) d.value = best(d.value).value, to.gradients.push_back(d);
    for (Value v : g_.outputs) b_.graph.outputs.push_back(made(v).as_it_is.value);
    to.graph = std::move(b_.graph);
    to.segments = from_.segments;
    return to;
  }

 private:
  Made& made(Value v) { return made_[v.node][v.result]; }
  DType dtype(Value v) const { return g_.type(v).dtype; }
  bool exact(Value v) const { return exact_[v.node][v.result]; }
  Tensor best(Value v) {
    const Made& m = made(v);
    return m.exact ? m.exact : m.wide ? m.wide : m.as_it_is;
  }
  static bool same_place(const Node& a, const Node& b) { return a.piece == b.piece && a.backward == b.backward; }
  void stand_at(const Node& n) { b_.scope = n.scope, b_.force_piece = n.piece, b_.backward = n.backward; }

  // A pointwise op with bf16 in it.
  bool in_f32(const Node& n) const {
    if (!n.op->pointwise || n.op->own_memory) return false;
    return n.results[0].dtype == bf16 ||
           std::any_of(n.operands.begin(), n.operands.end(), [&](Value v) { return dtype(v) == bf16; });
  }
  // Its operands' exact values make its own: sums of gradients, and ops that only move elements.
  bool hands_on(const Node& n) const {
    const bool adds = n.op->pointwise && n.op->accumulates;
    return adds || n.op->view || n.op->into || n.op->relocates || n.attrs.is<CastAttrs>();
  }

  // The value is wanted as it was before rounding, as far as its op can tell.
  void ask_exact(Value v) {
    const Node& n = g_.node(v);
    if (exact(v) || !(dtype(v) == bf16 || n.attrs.is<CastAttrs>())) return;
    exact_[v.node][v.result] = 1;
    if (!hands_on(n)) return;
    for (Value o : n.operands)
      if (dtype(o) == bf16) ask_exact(o);
  }

  // Which of the values that are made in f32 somebody reads in bf16.
  void find_rounded() {
    for (const Node& n : g_.nodes)
      for (Value v : n.operands)
        if (!in_f32(n) || !same_place(n, g_.node(v))) rounded_[v.node][v.result] = 1;
    for (Value v : g_.outputs) rounded_[v.node][v.result] = 1;
  }

  Tensor in_f32(Value v, const Node& reader, bool exactly) {
    Made& m = made(v);
    if (m.exact && exactly) return m.exact;
    if (m.wide && (exactly || same_place(g_.node(v), reader))) return m.wide;
    const auto [it, fresh] = widened_.try_emplace({v, reader.piece, reader.backward});
    if (fresh)
      it->second = g_.node(v).attrs.is<ConstantAttrs>() ? constant(b_, g_.node(v).attrs.as<ConstantAttrs>().value, f32)
                                                        : cast(m.as_it_is, f32);
    return it->second;
  }

  void make_wide(NodeId id) {
    const Node& n = g_.node(id);
    const bool exactly = exact({id, 0}) && hands_on(n);
    std::vector<Tensor> operands;
    for (Value v : n.operands)
      operands.push_back(dtype(v) == bf16 ? in_f32(v, n, exactly && exact(v)) : made(v).as_it_is);
    const DType type = n.results[0].dtype;
    const Tensor result = n.attrs.is<CastAttrs>() ? cast(operands[0], wide(type)) : b_.emit(*n.op, operands, n.attrs);
    Made& m = made({id, 0});
    (type == bf16 ? m.wide : m.as_it_is) = result;
    if (type == bf16 && rounded_[id][0]) m.as_it_is = cast(result, bf16);
  }

  void make_as_it_is(NodeId id) {
    const Node& n = g_.node(id);
    std::vector<Tensor> operands;
    for (Value v : n.operands) operands.push_back(made(v).as_it_is);
    const Tensor first = b_.emit(*n.op, operands, n.attrs);
    for (std::size_t r = 0; r < n.results.size(); ++r) {
      Made& m = made_[id][r];
      m.as_it_is = b_.result(first, int(r));
      if (exact_[id][r] && n.results[r].dtype == bf16) m.exact = exact_of(n, int(r), m.as_it_is);
    }
  }
  Tensor exact_of(const Node& n, int result, Tensor rounded) {
    if (n.op->widened && result == 0) {
      std::vector<Tensor> operands;
      for (Value v : n.operands) operands.push_back(made(v).as_it_is);
      return b_.emit(*n.op, operands, n.op->widened(n.attrs));
    }
    if (hands_on(n)) {
      std::vector<Tensor> operands;
      for (Value v : n.operands) operands.push_back(dtype(v) == bf16 ? in_f32(v, n, true) : made(v).as_it_is);
      return b_.result(b_.emit(*n.op, operands, n.attrs), result);
    }
    return cast(rounded, f32);
  }

  const StepGraph& from_;
  const Graph& g_;
  Builder b_;
  IdVector<NodeId, std::vector<Made>> made_;
  IdVector<NodeId, std::vector<char>> exact_, rounded_;
  std::map<std::tuple<Value, std::uint16_t, bool>, Tensor> widened_;
};

}  // namespace

StepGraph in_precision(const StepGraph& s) {
  if (!has_bf16(s.graph)) return s;
  StepGraph to = Precision(s).run();
  for (StepGraph::Output& o : to.outputs) STRETTO_ASSERT(to.graph.type(o.value).dtype != bf16, "outputs are not bf16");
  refuse(verify(to));
  return to;
}

}  // namespace stretto

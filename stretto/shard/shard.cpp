#include "stretto/shard/shard.h"

#include <algorithm>
#include <map>
#include <set>

#include "stretto/base/text.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/param.h"
#include "stretto/ops/rename.h"
#include "stretto/shard/local.h"
#include "stretto/shard/take_apart.h"

namespace stretto {
namespace {

struct User {
  NodeId node;  // none: an output or a gradient
  int operand = 0;
};

// A logical value in the local graph.
struct Made {
  Tensor tensor;
  AxisMask pending = 0;  // sums to be made
  Tensor whole = {};     // after they were made, if anybody asked
};

class Pass {
 public:
  Pass(const StepGraph& s, DimAxes axes, const ShardOptions& options, std::vector<std::vector<int>> storage,
       Sharded& to)
      : in_(s), g_(s.graph), local_(s.graph, std::move(axes), to), options_(options), to_(to) {
    state_ = storage[0], gradients_ = storage[1], params_ = storage[2];
    const std::vector<char> needed = needed_nodes(s);
    users_.resize(g_.nodes.size());
    made_.resize(g_.nodes.size());
    for (std::size_t i = 0; i < g_.nodes.size(); ++i) {
      users_[i].resize(g_.nodes[i].results.size());
      made_[i].resize(g_.nodes[i].results.size());
      if (!needed[i]) continue;
      for (std::size_t k = 0; k < g_.nodes[i].operands.size(); ++k)
        users(g_.nodes[i].operands[k]).push_back({NodeId{std::uint32_t(i)}, int(k)});
    }
    for (const StepGraph::Output& o : s.outputs) users(o.value).push_back({});
    for (const StepGraph::Grad& d : s.gradients) users(d.value).push_back({});
    needed_ = needed;
  }

  void run() {
    add_params();
    for (std::size_t i = 0; i < g_.nodes.size(); ++i)
      if (needed_[i] && !made_[i][0].tensor) step(NodeId{std::uint32_t(i)});
    finish();
  }

 private:
  std::vector<User>& users(Value v) { return users_[v.node.value][v.result]; }
  Made& made(Value v) { return made_[v.node.value][v.result]; }
  Tensor at(Value v) { return {&local_.builder, v}; }

  std::vector<int> beside(const std::vector<int>& axes, AxisMask own) const {
    std::vector<int> rest;
    for (int a : axes)
      if (!(own >> a & 1)) rest.push_back(a);
    return rest;
  }

  void add_params() {
    for (std::size_t p = 0; p < in_.params.size(); ++p) {
      const Value v = in_.params[p];
      const Node& n = g_.node(v);
      const ParamAttrs& a = n.attrs.as<ParamAttrs>();
      const Type type = n.results[0];
      const AxisMask own = local_.axes.mask(type.dims);
      const std::vector<int> state = beside(state_, own), grads = beside(gradients_, own), cut = beside(params_, own);
      ShardedParam out{.name = a.name, .type = type, .split = local_.axes.names(own)};
      out.state = local_.axes.names(state);
      out.gradients = local_.axes.names(grads);
      out.params = local_.axes.names(cut);
      out.elements = local_.elements(type);
      const auto flat = [&](const std::vector<int>& axes) {
        return local_.flat_dim(out.elements, axes, local_.axes.ranks(state));
      };
      out.updated = {type.dtype, {flat(state)}};
      out.stored = cut.empty() ? type : Type{type.dtype, {flat(cut)}};
      if (!grads.empty()) flat_gradients_[std::uint32_t(p)] = flat(grads);
      local_.stand_at(g_, n);
      made(v).tensor = local_.builder.emit(param_op, {}, ParamAttrs{a.name, type.dtype, out.stored.dims});
      to_.graph.params.push_back(made(v).tensor.value);
      if (!cut.empty()) flat_params_[v] = cut;
      to_.params.push_back(std::move(out));
    }
  }

  // The value as this node's operand. A parameter that is stored in parts is gathered once per piece and phase; so is,
  // if asked for, what forward gathered and backward needs again.
  Made operand(Value v, const Node& user) {
    if (const auto cut = flat_params_.find(v); cut != flat_params_.end()) {
      Tensor& whole = again_[{v, user.piece, user.backward}];
      if (!whole)
        whole = local_.gather_flat(made(v).tensor, g_.type(v), cut->second,
                                   fmt::format("parameter {}", to_.params[param_number(v)].name));
      return {.tensor = whole};
    }
    if (options_.regather && user.backward && regatherable_.contains(v)) {
      Tensor& whole = again_[{v, user.piece, true}];
      if (!whole) {
        const Value from = g_.node(v).operands[0];
        AxisMask pending = 0;
        whole = local_.rename(made(from).tensor, g_.type(v).dims, pending, cause_of_rename(g_.node(v)) + ", again");
      }
      return {.tensor = whole};
    }
    return made(v);
  }

  std::size_t param_number(Value v) const {
    return std::size_t(std::find(in_.params.begin(), in_.params.end(), v) - in_.params.begin());
  }

  Tensor resolved(Value v, Made& m, const std::string& cause) {
    if (!m.pending) return m.tensor;
    if (!made(v).whole) made(v).whole = local_.reduce(m.tensor, m.pending, Reduce::sum, cause);
    return made(v).whole;
  }

  std::string scope(const Node& n) const {
    const std::string& s = g_.scopes[n.scope];
    return s.empty() ? "" : s + "/";
  }
  std::string cause_of_rename(const Node& n) const {
    const RenameAttrs& a = n.attrs.as<RenameAttrs>();
    std::vector<std::string> pairs;
    for (std::size_t i = 0; i < a.from.size(); ++i)
      pairs.push_back(g_.dim(a.from[i]).name + " -> " + g_.dim(a.to[i]).name);
    return fmt::format("{}rename {}", scope(n), join(pairs, ", "));
  }

  // Only outputs and gradients use it: they are added up over ranks once per step.
  bool ends_here(Value v) {
    return std::all_of(users(v).begin(), users(v).end(), [](const User& u) { return u.node.none(); });
  }

  // May a sum over `axes` that is still to be made travel on through all users of the value? They must be linear in
  // it, none may have a dim on those axes, and it must not make more to send. A value that leaves its piece is whole.
  bool keep(Value v, AxisMask axes) {
    const std::vector<User>& all = users(v);
    const std::uint16_t piece = g_.node(v).piece;
    i64 elements = 0;
    int count = 0;
    NodeId last{};
    for (const User& u : all) {
      if (u.node.none()) {
        elements += 1, ++count;
        continue;
      }
      const Node& n = g_.node(u.node);
      if (n.piece != piece) return false;
      const OpCall call{g_, n};
      if (!n.op->layout_change) {
        const Spread s = n.op->spread(call);
        if (std::find(s.linear.begin(), s.linear.end(), u.operand) == s.linear.end()) return false;
        DimSet space = s.extra;
        for (Value o : n.operands) space = joined(space, g_.type(o).dims);
        for (const Type& t : n.results) space = joined(space, t.dims);
        if (local_.axes.mask(space) & axes) return false;
      }
      if (n.op->layout_change && ends_here({u.node, 0})) {
        elements += 1, ++count;
        continue;
      }
      if (u.node == last) continue;  // twice an operand of one node
      last = u.node;
      ++count;
      for (std::size_t r = 0; r < n.results.size(); ++r)
        if (!users_[u.node.value][r].empty()) elements += local_.elements(n.results[r]);
    }
    const i64 own = local_.elements(g_.type(v));
    return count > 1 ? elements < own : elements <= own;
  }

  // Enters a result; a sum that may not travel on is made here, once.
  void enter(Value v, Tensor t, AxisMask sums, AxisMask maxima) {
    const Node& n = g_.node(v);
    if (maxima) t = local_.reduce(t, maxima, Reduce::max, fmt::format("{}{}", scope(n), n.op->name));
    if (sums && !keep(v, sums)) {
      t = local_.reduce(t, sums, Reduce::sum, fmt::format("{}{}", scope(n), n.op->name));
      sums = 0;
    }
    made(v) = {.tensor = t, .pending = sums};
  }

  void step(NodeId id) {
    const Node& n = g_.node(id);
    local_.stand_at(g_, n);
    if (n.op->layout_change) return step_rename(id, n);
    const Spread s = n.op->spread({g_, n});
    std::vector<Made> in;
    for (Value v : n.operands) in.push_back(operand(v, n));
    AxisMask pending = 0;
    for (const Made& m : in) pending |= m.pending;
    if (pending) pending = s.jointly ? add_pending(id, in, pending) : multiply_pending(n, in);

    std::vector<Tensor> operands;
    for (const Made& m : in) operands.push_back(m.tensor);
    const Tensor first = local_.builder.emit(*n.op, operands, n.attrs);
    DimSet space = s.extra;
    for (Value v : n.operands) space = joined(space, g_.type(v).dims);
    for (const Type& t : n.results) space = joined(space, t.dims);
    for (std::size_t r = 0; r < n.results.size(); ++r) {
      const Value v{id, std::uint8_t(r)};
      AxisMask sums = pending, maxima = 0;
      for (DimId d : space) {
        const AxisMask lies_on = local_.axes.mask(d);
        if (!lies_on || contains(n.results[r].dims, d)) continue;
        const auto how = std::find_if(s.reduce.begin(), s.reduce.end(), [&](const auto& x) { return x.first == d; });
        STRETTO_ASSERT(how != s.reduce.end(), "a dim of the space that a result lacks is reduced");
        (how->second == Reduce::sum ? sums : maxima) |= lies_on;
      }
      if (users(v).empty())
        made(v) = {.tensor = local_.builder.result(first, int(r))};
      else
        enter(v, local_.builder.result(first, int(r)), sums, maxima);
    }
  }

  void step_rename(NodeId id, const Node& n) {
    const Made from = operand(n.operands[0], n);
    AxisMask pending = from.pending;
    const Tensor t = local_.rename(from.tensor, n.results[0].dims, pending, cause_of_rename(n), ends_here({id, 0}));
    // What was pending would have to be added up again, too.
    if (local_.gathered && !n.backward && !from.pending) regatherable_.insert(Value{id, 0});
    enter({id, 0}, t, pending, 0);
  }

  // Sums of operands, some of them pending. If the result may stay pending, an operand that is whole along one of the
  // axes counts on the first rank only. Otherwise what is pending is added up alone: the rest never goes on the wire.
  AxisMask add_pending(NodeId id, std::vector<Made>& in, AxisMask all) {
    const Node& n = g_.node(id);
    const int count = int(std::count_if(in.begin(), in.end(), [](const Made& m) { return m.pending != 0; }));
    if (count == int(in.size()) || keep({id, 0}, all)) {
      for (std::size_t k = 0; k < in.size(); ++k)
        if (const AxisMask missing = all & ~in[k].pending) in[k].tensor = local_.only_first(in[k].tensor, missing);
      return all;
    }
    for (std::size_t k = 0; k < in.size(); ++k)
      in[k].tensor = resolved(n.operands[k], in[k], fmt::format("{}{}", scope(n), n.op->name)), in[k].pending = 0;
    return 0;
  }

  // Products: along one axis at most one operand stays pending.
  AxisMask multiply_pending(const Node& n, std::vector<Made>& in) {
    AxisMask all = 0;
    for (std::size_t k = 0; k < in.size(); ++k) {
      if (in[k].pending & all)
        in[k].tensor = resolved(n.operands[k], in[k], fmt::format("{}{}", scope(n), n.op->name)), in[k].pending = 0;
      all |= in[k].pending;
    }
    return all;
  }

  void finish() {
    StepGraph& out = to_.graph;
    for (Value v : in_.inputs) out.inputs.push_back(made(v).tensor.value);
    for (Value v : in_.scalars) out.scalars.push_back(made(v).tensor.value);
    for (const StepGraph::Output& o : in_.outputs) {
      const Node& n = g_.node(o.value);
      local_.stand_at(g_, n);
      Made m = operand(o.value, n);
      const DimSet dims = g_.type(o.value).dims;
      if (local_.axes.mask(dims)) m.tensor = whole_output(m, dims, o.name);
      out.outputs.push_back({o.name, m.tensor.value, o.count});
      to_.outputs.push_back(local_.axes.names(m.pending));
    }
    std::vector<StepGraph::Grad> gradients = in_.gradients;  // in the order of accumulators
    std::stable_sort(gradients.begin(), gradients.end(), [](const auto& x, const auto& y) {
      return std::pair(x.param, x.piece) < std::pair(y.param, y.piece);
    });
    for (const StepGraph::Grad& d : gradients) {
      Made m = made(d.value);
      local_.stand_at(g_.node(d.value).scope, d.piece, true);
      if (const auto flat = flat_gradients_.find(d.param); flat != flat_gradients_.end())
        m.tensor = local_.scatter_flat(m.tensor, flat->second, m.pending,
                                       fmt::format("gradient of {}", to_.params[d.param].name));
      out.gradients.push_back({d.param, d.piece, m.tensor.value});
      to_.gradients.push_back({d.param, m.tensor.type(), local_.axes.names(m.pending)});
    }
    to_.mesh = local_.axes.mesh;
    out.graph = std::move(local_.builder.graph);
  }

  // Results that are rows (metrics) come out whole on every rank.
  Tensor whole_output(Made& m, const DimSet& dims, const std::string& name) {
    DimSet whole;
    for (DimId d : dims) {
      Dim w = g_.dim(d);
      w.name += "/output", w.parent = "", w.minus.clear();
      const DimId id = local_.builder.intern(w);
      if (id.value >= local_.axes.of.size()) local_.axes.of.resize(id.value + 1u);
      whole.push_back(id);
    }
    return local_.rename(m.tensor, whole, m.pending, fmt::format("output {}", name));
  }

  const StepGraph& in_;
  const Graph& g_;
  LocalGraph local_;
  const ShardOptions& options_;
  Sharded& to_;
  std::vector<int> state_, gradients_, params_;
  std::vector<char> needed_;
  std::vector<std::vector<std::vector<User>>> users_;
  std::vector<std::vector<Made>> made_;
  std::map<Value, std::vector<int>> flat_params_;
  std::map<std::uint32_t, DimId> flat_gradients_;
  std::set<Value> regatherable_;
  std::map<std::tuple<Value, std::uint16_t, bool>, Tensor> again_;
};

// A block over more axes must lie within a block over fewer.
void check_storage(const Storage& s, std::vector<Fault>& faults) {
  for (const auto& [axes, what] : {std::pair{&s.gradients, "gradients"}, {&s.params, "parameters"}})
    if (axes->size() > s.state.size() || !std::equal(axes->begin(), axes->end(), s.state.begin()))
      faults.push_back(fault("storage", "the optimizer state is cut over the same axes first, then over more",
                             "{} are cut over '{}' and the optimizer state over '{}'", what, join(*axes, ","),
                             s.state.empty() ? "nothing" : join(s.state, ",")));
}

void check_used(const DimAxes& axes, const std::vector<std::vector<int>>& storage, std::vector<Fault>& faults) {
  AxisMask used = axes.refused;  // there the reason is another one
  for (const auto& of : axes.of)
    for (int a : of) used |= AxisMask(1) << a;
  for (const auto& list : storage)
    for (int a : list) used |= AxisMask(1) << a;
  for (std::size_t a = 0; a < axes.mesh.size(); ++a) {
    if (axes.mesh[a].size < 1)
      faults.push_back(
          fault("mesh", "sizes are at least 1", "axis '{}' has size {}", axes.mesh[a].name, axes.mesh[a].size));
    if (axes.mesh[a].size > 1 && !(used >> a & 1))
      faults.push_back(fault("mesh", "map a dim to it, or leave it out",
                             "no dim and no storage uses axis '{0}': its {1} ranks would repeat the same work",
                             axes.mesh[a].name, axes.mesh[a].size));
  }
}

}  // namespace

Sharded shard(const StepGraph& s, const Mesh& mesh, const Layout& layout, const ShardOptions& options) {
  std::vector<Fault> faults;
  DimAxes axes = resolve(s.graph.dims, mesh, layout, faults);
  std::vector<std::vector<int>> storage;
  for (const Axes* list : {&options.storage.state, &options.storage.gradients, &options.storage.params})
    storage.push_back(axis_numbers(axes.mesh, *list, "storage", faults));
  check_storage(options.storage, faults);
  check_used(axes, storage, faults);
  const StepGraph ready = take_apart(s, axes, faults);
  refuse(std::move(faults));
  Sharded out;
  Pass(ready, std::move(axes), options, std::move(storage), out).run();
  refuse(verify(out.graph.graph));
  return out;
}

}  // namespace stretto

#include "stretto/shard/shard.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "stretto/base/text.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/param.h"
#include "stretto/ops/rename.h"
#include "stretto/shard/inner/disjoint.h"
#include "stretto/shard/inner/grouped.h"
#include "stretto/shard/inner/local.h"
#include "stretto/shard/inner/take_apart.h"

namespace stretto {
namespace {

struct User {
  std::optional<NodeId> node;  // none: an output or a gradient
  int operand = 0;
};

// A logical value in the local graph.
struct Made {
  Tensor tensor;
  AxisSet pending = {};    // sums to be made
  Disjoint disjoint = {};  // ... of which these are of disjoint parts
  Tensor whole = {};       // after they were made, if anybody asked
};

// The axes that storage is cut over, beside those that dims lie on.
struct StorageAxes {
  AxisList state, gradients, params;
};

class Pass {
 public:
  Pass(const StepGraph& s, DimAxes axes, const ShardOptions& options, StorageAxes storage)
      : in_(s),
        g_(s.graph),
        local_(s.graph, std::move(axes), options.room),
        options_(options),
        storage_(std::move(storage)),
        needed_(needed_nodes(s)),
        users_(g_.nodes.size()),
        made_(g_.nodes.size()) {
    for (NodeId id : needed_.ids()) {
      const Node& n = g_.node(id);
      users_[id].resize(n.results.size());
      made_[id].resize(n.results.size());
      if (!needed_[id]) continue;
      for (int k = 0; Value v : n.operands) users(v).push_back({id, k++});
    }
    for (const StepGraph::Output& o : s.outputs) users(o.value).push_back({});
    for (const StepGraph::Grad& d : s.gradients) users(d.value).push_back({});
  }

  Sharded run() && {
    add_params();
    for (NodeId id : needed_.ids())
      if (needed_[id] && !made_[id][0].tensor) step(id);
    return finish();
  }

 private:
  std::vector<User>& users(Value v) { return users_[v.node][v.result]; }
  Made& made(Value v) { return made_[v.node][v.result]; }

  static AxisList beside(const AxisList& axes, AxisSet own) {
    AxisList rest;
    for (AxisId a : axes)
      if (!own.has(a)) rest.push_back(a);
    return rest;
  }

  void add_params() {
    for (ParamId p : in_.params.ids()) {
      const Value v = in_.params[p];
      const Node& n = g_.node(v);
      const ParamAttrs& a = n.attrs.as<ParamAttrs>();
      const Type type = n.results[0];
      const AxisSet own = local_.axes.set(type.dims);
      const AxisList state = beside(storage_.state, own), grads = beside(storage_.gradients, own),
                     cut = beside(storage_.params, own);
      ShardedParam out{.name = a.name, .type = type, .split = local_.axes.names(own)};
      out.state = local_.axes.names(state);
      out.gradients = local_.axes.names(grads);
      out.params = local_.axes.names(cut);
      out.elements = local_.elements(type);
      const auto flat = [&](const AxisList& axes) {
        return local_.flat_dim(out.elements, axes, local_.axes.ranks(state));
      };
      out.updated = {wide(type.dtype), {flat(state)}};
      out.stored = cut.empty() ? type : Type{type.dtype, {flat(cut)}};
      if (!grads.empty()) flat_gradients_[p] = flat(grads);
      local_.stand_at(n);
      made(v).tensor = local_.builder.emit(param_op, {}, ParamAttrs{a.name, type.dtype, out.stored.dims});
      to_.graph.params.push_back(made(v).tensor.value);
      if (!cut.empty()) flat_params_[v] = {cut, fmt::format("parameter {}", a.name)};
      to_.params.push_back(std::move(out));
    }
  }

  // The value as this node's operand. A parameter that is stored in parts is gathered once per piece and phase; so is,
  // if asked for, what forward gathered and backward needs again.
  Made operand(Value v, const Node& user) {
    if (const auto cut = flat_params_.find(v); cut != flat_params_.end()) {
      Tensor& whole = again_[{v, user.piece, user.backward}];
      if (!whole) whole = local_.gather_flat(made(v).tensor, g_.type(v), cut->second.axes, cut->second.cause);
      return {.tensor = whole};
    }
    if (options_.regather && user.backward && regatherable_.contains(v)) {
      Tensor& whole = again_[{v, user.piece, true}];
      if (!whole) {
        const Value from = g_.node(v).operands[0];
        whole = local_.rename(made(from).tensor, g_.type(v).dims, {}, cause_of_rename(g_.node(v)) + ", again").tensor;
      }
      return {.tensor = whole};
    }
    return made(v);
  }

  std::string scope(const Node& n) const {
    const std::string& s = g_.scopes[n.scope];
    return s.empty() ? "" : s + "/";
  }
  std::string cause_of(const Node& n) const { return fmt::format("{}{}", scope(n), n.op->name); }
  std::string cause_of_rename(const Node& n) const {
    const RenameAttrs& a = n.attrs.as<RenameAttrs>();
    std::vector<std::string> pairs;
    for (std::size_t i = 0; i < a.from.size(); ++i)
      pairs.push_back(g_.dim(a.from[i]).name + " -> " + g_.dim(a.to[i]).name);
    return fmt::format("{}rename {}", scope(n), join(pairs, ", "));
  }

  // Only outputs and gradients use it: they are added up over ranks once per step.
  bool ends_here(Value v) {
    return std::all_of(users(v).begin(), users(v).end(), [](const User& u) { return !u.node; });
  }

  // Every dim that the op goes over.
  DimSet space_of(const Node& n, const Spread& s) const {
    DimSet space = s.extra;
    for (Value o : n.operands) space = joined(space, g_.type(o).dims);
    for (const Type& t : n.results) space = joined(space, t.dims);
    return space;
  }

  // May a pending sum over `axes` of the operand with this number go through the op?
  bool lets_through(const Node& n, int operand, AxisSet axes) const {
    if (n.op->layout_change) return true;
    const Spread s = n.op->spread({g_, n});
    return std::find(s.linear.begin(), s.linear.end(), operand) != s.linear.end() &&
           !(local_.axes.set(space_of(n, s)) & axes);
  }

  // Segments of one piece are on one actor.
  bool leaves_piece(Value v, const Node& user) const {
    return user.piece / in_.segments != g_.node(v).piece / in_.segments;
  }

  // May a sum over `axes` that is still to be made travel on through all users of the value? They must be linear in it,
  // none may have a dim on those axes, and it must not make more to send: less, unless some of them are of another
  // segment, where the sum goes on. A value that leaves its piece is whole.
  bool keep(Value v, AxisSet axes) {
    i64 elements = 0;
    int count = 0;
    bool goes_on = false;
    std::optional<NodeId> last;
    for (const User& u : users(v)) {
      if (!u.node) {
        elements += 1, ++count;
        continue;
      }
      const Node& n = g_.node(*u.node);
      if (leaves_piece(v, n) || !lets_through(n, u.operand, axes)) return false;
      goes_on = goes_on || n.piece != g_.node(v).piece;
      if (n.op->layout_change && ends_here({*u.node, 0})) {
        elements += 1, ++count;
        continue;
      }
      if (u.node == last) continue;  // twice an operand of one node
      last = u.node;
      ++count;
      for (std::size_t r = 0; r < n.results.size(); ++r)
        if (!users_[*u.node][r].empty()) elements += local_.elements(n.results[r]);
    }
    const i64 own = local_.elements(g_.type(v));
    return count > 1 && !goes_on ? elements < own : elements <= own;
  }

  // May it stay in disjoint parts, whatever the other operands of its users turn out to be?
  bool stays_disjoint(Value v, const Disjoint& parts) {
    return std::all_of(users(v).begin(), users(v).end(), [&](const User& u) {
      if (!u.node) return false;
      const Node& n = g_.node(*u.node);
      return !leaves_piece(v, n) && (disjoint::masked(n, n.op->spread({g_, n}), u.operand, parts, local_.axes) ||
                                     disjoint::within_rows(g_, n, parts.support));
    });
  }

  // Enters a result in disjoint parts; other sums are made first, and these, too, when users need them.
  void enter_disjoint(Value v, Tensor t, AxisSet sums, const Disjoint& parts) {
    if (!stays_disjoint(v, parts)) return enter(v, t, sums, {});
    if (const AxisSet others = sums - parts.axes) t = local_.reduce(t, others, Reduce::sum, cause_of(g_.node(v)));
    made(v) = {.tensor = t, .pending = parts.axes, .disjoint = parts};
  }

  // An op within rows, on disjoint parts of one support and on values without pending sums: the same of its result.
  bool step_disjoint(NodeId id, const Spread& s, const std::vector<Made>& in) {
    Disjoint parts;
    for (const Made& m : in)
      if (m.disjoint) parts = m.disjoint;
    const Node& n = g_.node(id);
    if (!parts || !disjoint::within_rows(g_, n, parts.support)) return false;
    std::vector<bool> zero;
    std::vector<Tensor> operands;
    for (const Made& m : in) {
      if (m.pending && (m.pending != parts.axes || !(m.disjoint == parts))) return false;
      zero.push_back(bool(m.disjoint));
      operands.push_back(m.tensor);
    }
    if (!disjoint::makes_zero(s, zero)) return false;
    const Value v{id, 0};
    const AxisSet sums = parts.axes | parts_of(n.results[0], space_of(n, s), s).sums;
    enter_disjoint(v, local_.builder.emit(*n.op, operands, n.attrs), sums, parts);
    return true;
  }

  // Enters a result; a sum that may not travel on is made here, once.
  void enter(Value v, Tensor t, AxisSet sums, AxisSet maxima) {
    const Node& n = g_.node(v);
    if (maxima) t = local_.reduce(t, maxima, Reduce::max, cause_of(n));
    if (sums && !keep(v, sums)) {
      t = local_.reduce(t, sums, Reduce::sum, cause_of(n));
      sums = {};
    }
    made(v) = {.tensor = t, .pending = sums};
  }

  void step(NodeId id) {
    const Node& n = g_.node(id);
    local_.stand_at(n);
    if (n.op->layout_change) return step_rename(id, n);
    if (n.op->regroups != Regroups::none) return step_grouped(id, n);
    const Spread s = n.op->spread({g_, n});
    std::vector<Made> in;
    for (int k = 0; Value v : n.operands) {
      in.push_back(operand(v, n));
      if (Made& m = in.back(); m.disjoint && disjoint::masked(n, s, k, m.disjoint, local_.axes))
        m = {.tensor = m.tensor};
      ++k;
    }
    if (step_disjoint(id, s, in)) return;
    for (std::size_t k = 0; k < in.size(); ++k)
      if (in[k].disjoint) add_up(n, k, in[k]);
    AxisSet pending;
    for (const Made& m : in) pending |= m.pending;
    if (pending) pending = s.jointly ? add_pending(id, in, pending) : multiply_pending(n, in);

    std::vector<Tensor> operands;
    for (const Made& m : in) operands.push_back(m.tensor);
    const Tensor first = local_.builder.emit(*n.op, operands, n.attrs);
    const DimSet space = space_of(n, s);
    for (int r = 0; const Type& t : n.results) {
      Value v{id};
      v.result = r;
      const Tensor result = local_.builder.result(first, r++);
      const Parts parts = parts_of(t, space, s);
      const Disjoint apart = disjoint::made_by(g_, n, s, local_.axes);
      if (users(v).empty())
        made(v) = {.tensor = result};
      else if (apart && !pending)
        enter_disjoint(v, result, parts.sums, apart);
      else
        enter(v, result, pending | parts.sums, parts.maxima);
    }
  }

  // The axes along which a result is in parts after the op: dims that it has reduced away lie on them.
  struct Parts {
    AxisSet sums, maxima;
  };
  Parts parts_of(const Type& result, const DimSet& space, const Spread& s) const {
    Parts parts;
    for (DimId d : space) {
      const AxisSet lies_on = local_.axes.set(d) - grouped::shared_axes(g_, local_.axes, space, d);
      if (!lies_on || contains(result.dims, d)) continue;
      const auto how = std::find_if(s.reduce.begin(), s.reduce.end(), [&](const auto& x) { return x.first == d; });
      STRETTO_ASSERT(how != s.reduce.end(), "a dim of the space that a result lacks is reduced");
      (how->second == Reduce::sum ? parts.sums : parts.maxima) |= lies_on;
    }
    return parts;
  }

  void step_rename(NodeId id, const Node& n) {
    const Made from = operand(n.operands[0], n);
    const Value v{id, 0};
    const LocalGraph::Renamed to = local_.rename(from.tensor, n.results[0].dims, from.pending, cause_of_rename(n),
                                                 ends_here(v) ? Gather::by_later_sums : Gather::now);
    // What was pending would have to be added up again, too.
    if (to.gathered && !n.backward && !from.pending) regatherable_.insert(v);
    enter(v, to.tensor, to.pending, {});
  }

  // The first operand's sums may stay pending; the plan's last result is a sum over the tokens of a rank.
  void step_grouped(NodeId id, const Node& n) {
    std::vector<Tensor> operands;
    AxisSet pending;
    for (int k = 0; Value v : n.operands) {
      Made m = operand(v, n);
      if (m.disjoint || k > 0) add_up(n, k, m);
      if (k++ == 0) pending = m.pending;
      operands.push_back(m.tensor);
    }
    const std::vector<Tensor> results = grouped::local(local_, g_, n, operands, cause_of(n));
    for (std::size_t r = 0; r < results.size(); ++r) {
      const Value v{id, std::uint8_t(r)};
      AxisSet sums = pending;
      if (n.op->regroups == Regroups::plan && is_float(n.results[r].dtype))
        sums = local_.axes.set(without(g_.type(n.operands[0]).dims, n.results[r].dims));
      if (users(v).empty())
        made(v) = {.tensor = results[r]};
      else
        enter(v, results[r], sums, {});
    }
  }

  // Sums of operands, some of them pending. If the result may stay pending, an operand that is whole along one of the
  // axes counts on the first rank only. Otherwise what is pending is added up alone: the rest never goes on the wire.
  AxisSet add_pending(NodeId id, std::vector<Made>& in, AxisSet all) {
    if (std::all_of(in.begin(), in.end(), [](const Made& m) { return bool(m.pending); }) || keep({id, 0}, all)) {
      for (Made& m : in)
        if (const AxisSet missing = all - m.pending) m.tensor = local_.only_first(m.tensor, missing);
      return all;
    }
    for (std::size_t k = 0; k < in.size(); ++k) add_up(g_.node(id), k, in[k]);
    return {};
  }

  // Products: along one axis at most one operand stays pending.
  AxisSet multiply_pending(const Node& n, std::vector<Made>& in) {
    AxisSet all;
    for (std::size_t k = 0; k < in.size(); ++k) {
      if (in[k].pending & all) add_up(n, k, in[k]);
      all |= in[k].pending;
    }
    return all;
  }

  // The sums of the k-th operand that are pending, made once for all who ask.
  void add_up(const Node& n, std::size_t k, Made& m) {
    if (!m.pending) return;
    Tensor& whole = made(n.operands[k]).whole;
    if (!whole) whole = local_.reduce(m.tensor, m.pending, Reduce::sum, cause_of(n));
    m = {.tensor = whole};
  }

  Sharded finish() {
    StepGraph& out = to_.graph;
    for (Value v : in_.inputs) out.inputs.push_back(made(v).tensor.value);
    for (Value v : in_.scalars) out.scalars.push_back(made(v).tensor.value);
    for (const StepGraph::Output& o : in_.outputs) {
      const Node& n = g_.node(o.value);
      local_.stand_at(n);
      Made m = operand(o.value, n);
      const DimSet dims = g_.type(o.value).dims;
      if (local_.axes.set(dims)) m = whole_output(m, dims, o.name);
      out.outputs.push_back({o.name, m.tensor.value, o.count});
      to_.outputs.push_back(local_.axes.names(m.pending));
    }
    for (const StepGraph::Grad& d : in_.gradients) {
      Made m = made(d.value);
      local_.stand_at(g_.node(d.value).scope, d.piece.value, true);
      if (const auto flat = flat_gradients_.find(d.param); flat != flat_gradients_.end())
        m.tensor = local_.scatter_flat(m.tensor, flat->second, m.pending,
                                       fmt::format("gradient of {}", to_.params[d.param].name));
      out.gradients.push_back({d.param, d.piece, m.tensor.value});
      to_.gradients.push_back({d.param, m.tensor.type(), local_.axes.names(m.pending)});
    }
    out.graph = std::move(local_.builder.graph);
    out.segments = in_.segments;
    to_.mesh = local_.axes.mesh;
    to_.collectives = std::move(local_.collectives);
    to_.warnings = std::move(local_.warnings);
    to_.reduce = options_.reduce;
    return std::move(to_);
  }

  // Results that are rows (metrics) come out whole on every rank.
  Made whole_output(const Made& m, const DimSet& dims, const std::string& name) {
    DimSet whole;
    for (DimId d : dims) {
      Dim w = g_.dim(d);
      w.name += "/output", w.parent = "", w.minus.clear();
      whole.push_back(local_.builder.intern(w));
      local_.axes.lay(whole.back(), {});
    }
    const LocalGraph::Renamed r = local_.rename(m.tensor, whole, m.pending, fmt::format("output {}", name));
    return {.tensor = r.tensor, .pending = r.pending};
  }

  struct FlatParam {
    AxisList axes;  // that it is stored in parts over
    std::string cause;
  };

  const StepGraph& in_;
  const Graph& g_;
  LocalGraph local_;
  const ShardOptions& options_;
  StorageAxes storage_;
  Sharded to_;
  IdVector<NodeId, bool> needed_;
  IdVector<NodeId, std::vector<std::vector<User>>> users_;  // per result
  IdVector<NodeId, std::vector<Made>> made_;                // per result
  std::map<Value, FlatParam> flat_params_;
  std::map<ParamId, DimId> flat_gradients_;  // per parameter
  std::set<Value> regatherable_;
  std::map<std::tuple<Value, std::uint16_t, bool>, Tensor> again_;
};

// A block over more axes must lie within a block over fewer.
void check_storage(const Storage& s, std::vector<Fault>& faults) {
  for (const auto& [axes, what] : {std::pair{&s.gradients, "gradients"}, {&s.params, "parameters"}})
    if (axes->size() > s.state.size() || !std::equal(axes->begin(), axes->end(), s.state.begin()))
      faults.push_back(fault("storage", "the optimizer state is cut over the same axes first, then over more",
                             "{} are cut over '{}' and the optimizer state over '{}'", what, join(*axes, ","),
                             s.state.empty() ? "nothing" : join(s.state, ","))
                           .about({"parallel.zero"}));
}

void check_used(const DimAxes& axes, const StorageAxes& storage, std::vector<Fault>& faults) {
  AxisSet used = axes.refused;  // there the reason is another one
  for (const AxisList& list : axes.of) used |= list;
  for (const AxisList* list : {&storage.state, &storage.gradients, &storage.params}) used |= *list;
  for (AxisId id : axes.ids()) {
    const Axis& a = axes.axis(id);
    if (a.size < 1)
      faults.push_back(fault("mesh", "sizes are at least 1", "axis '{}' has size {}", a.name, a.size)
                           .about(settings_of({}, std::vector{a.name})));
    if (a.size > 1 && !used.has(id))
      faults.push_back(fault("mesh", "map a dim to it, or leave it out",
                             "no dim and no storage uses axis '{0}': its {1} "
                             "ranks would repeat the same work",
                             a.name, a.size)
                           .about(settings_of({}, std::vector{a.name})));
  }
}

}  // namespace

Sharded shard(const StepGraph& s, const Mesh& mesh, const Layout& layout, const ShardOptions& options) {
  std::vector<Fault> faults;
  DimAxes axes = resolve(s.graph.dims, mesh, layout, faults);
  const auto cut_over = [&](const Axes& names) {
    return axes_named(axes.mesh, names, "storage", {"parallel.zero"}, faults);
  };
  StorageAxes storage{cut_over(options.storage.state), cut_over(options.storage.gradients),
                      cut_over(options.storage.params)};
  check_storage(options.storage, faults);
  check_used(axes, storage, faults);
  const StepGraph ready = take_apart(s, axes, faults);
  refuse(std::move(faults));
  Sharded out = Pass(ready, std::move(axes), options, std::move(storage)).run();
  refuse(verify(out.graph.graph));
  return out;
}

}  // namespace stretto

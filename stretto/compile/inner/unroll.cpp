#include "stretto/compile/inner/unroll.h"

#include <algorithm>
#include <limits>

#include "stretto/base/text.h"
#include "stretto/ops/add.h"
#include "stretto/ops/concat.h"
#include "stretto/ops/extremum.h"
#include "stretto/ops/rename.h"
#include "stretto/ops/slice.h"

namespace stretto {
namespace {

DimSet space_of(const Graph& g, const Node& n, const Spread& s) {
  DimSet all = s.extra;
  for (Value v : n.operands) all = joined(all, g.type(v).dims);
  for (const Type& t : n.results) all = joined(all, t.dims);
  return all;
}

}  // namespace

std::vector<i64> sizes_of(const SegmentSizes& s, const Graph& g, std::string_view dim) {
  const auto refused = [](Error e) { return std::move(e).about({"train.segments"}); };
  const auto it = std::find_if(g.dims.begin(), g.dims.end(), [&](const Dim& d) { return d.name == dim; });
  if (it == g.dims.end())
    throw refused(
        Error("segments", "the model has no dim '{}' that could be cut", dim).hint("leave train.segments out"));
  if (it->valid() != it->size)
    throw refused(Error("segments", "dim '{}' is padded: {}", dim, it->str()).hint("use a size without padding"));
  if (s.sizes.empty() && (s.count < 1 || it->size % s.count != 0)) {
    std::vector<std::string> numbers;
    for (i64 n = 2; n <= std::min<i64>(it->size, 64) && numbers.size() < 6; ++n)
      if (it->size % n == 0) numbers.push_back(std::to_string(n));
    throw refused(Error("segments", "sequences of {} tokens cannot be cut into {} equal segments", it->size, s.count)
                      .hint("use {}, or say how long each is: segments = [{}, {}]",
                            numbers.empty() ? "1" : join(numbers, ", "), it->size - it->size / 2, it->size / 2));
  }
  const std::vector<i64> sizes = s.sizes.empty() ? std::vector<i64>(std::size_t(s.count), it->size / s.count) : s.sizes;
  i64 sum = 0;
  for (i64 n : sizes) {
    if (n < 1) throw refused(Error("segments", "a segment has {} tokens", n).hint("each has at least one"));
    sum += n;
  }
  if (sum != it->size)
    throw refused(Error("segments", "they are of {} tokens together, and sequences of {}", sum, it->size)
                      .hint("sizes add up to the sequence's"));
  return sizes;
}

Unroll::Unroll(const Graph& g, std::string_view dim, const std::vector<i64>& sizes)
    : g_(g), sizes_(sizes), activation_(g.nodes.size()), made_(g.nodes.size()) {
  i64 start = 0;
  for (i64 size : sizes_) starts_.push_back(start), start += size;
  for (DimId d : ids_until<DimId>(g.dims.size())) along_.push_back(g.origin(d) == dim);
  b_.graph.dims = g.dims;
  b_.graph.scopes = g.scopes;
  std::uint32_t pieces = 1;
  for (const Node& n : g.nodes) pieces = std::max<std::uint32_t>(pieces, n.piece + 1u);
  if (pieces * sizes_.size() > std::numeric_limits<std::uint16_t>::max())
    throw Error("segments", "{} segments of {} pieces are more than {} pieces", sizes_.size(), pieces,
                std::numeric_limits<std::uint16_t>::max())
        .hint("use fewer segments")
        .about({"train.segments"});
  find_activations();
  for (NodeId id : made_.ids()) step(id);
}

void Unroll::find_activations() {
  IdVector<NodeId, char> inputs(g_.nodes.size()), params(g_.nodes.size());
  for (NodeId id : activation_.ids()) {
    const Node& n = g_.node(id);
    inputs[id] = n.op->leaf == Leaf::argument, params[id] = n.op->leaf == Leaf::param;
    for (Value v : n.operands) inputs[id] |= inputs[v.node], params[id] |= params[v.node];
    activation_[id] = inputs[id] && params[id];
  }
}

DimSet Unroll::positions(const DimSet& dims) const {
  DimSet all;
  for (DimId d : dims)
    if (along(d)) all.push_back(d);
  return all;
}

// A node that is whole stands in the first segment of its piece: whoever reads it makes it again, or is a later one.
void Unroll::step(NodeId id) {
  const Node& n = g_.node(id);
  made_[id].resize(n.results.size());
  const auto give = [&](const std::vector<Value>& firsts, Made as) {
    for (std::size_t r = 0; r < n.results.size(); ++r) {
      made_[id][r] = as;
      for (Value v : firsts) v.result = std::uint8_t(r), made_[id][r].parts.push_back(v);
    }
  };
  const DimNames all = [&](DimId d) { return along(d) ? whole(d) : d; };
  const auto of = [&](int segment) {
    std::vector<Value> operands;
    for (Value v : n.operands) operands.push_back(activation_[id] ? read(v, segment) : made(v).parts[0]);
    return operands;
  };
  if (!activation_[id]) return give({emit(n, of(0), all, piece(n, 0))}, {});
  const DimSet space = space_of(g_, n, n.op->spread({g_, n}));
  if (!positions(space).empty()) return in_segments(id, space);
  if (std::any_of(n.operands.begin(), n.operands.end(), [&](Value v) { return made(v).late; }))
    return give({emit(n, of(segments() - 1), all, piece(n, segments() - 1))}, {.late = true});
  std::vector<Value> parts;
  for (int s = 0; s < segments(); ++s) parts.push_back(emit(n, of(s), all, piece(n, s)));
  give(parts, {.alike = true});
}

void Unroll::in_segments(NodeId id, const DimSet& space) {
  const Node& n = g_.node(id);
  const OpCall call{g_, n};
  std::optional<LooksBack> back = n.op->looks_back ? n.op->looks_back(call) : std::nullopt;
  if (back && !along(back->over)) back = std::nullopt;
  check(id, space, back);
  const auto looks_back = [&](int k) {
    return back && std::find(back->operands.begin(), back->operands.end(), k) != back->operands.end();
  };
  for (int s = 0; s < segments(); ++s) {
    std::vector<Value> operands;
    for (int k = 0; k < int(n.operands.size()); ++k)
      operands.push_back(looks_back(k) ? seen(n.operands[k], back->over, s) : read(n.operands[k], s));
    const DimNames names = [&](DimId d) { return !along(d) ? d : back && d == back->over ? up_to(d, s) : part(d, s); };
    Value first = emit(n, operands, names, piece(n, s));
    for (std::size_t r = 0; r < n.results.size(); ++r, ++first.result) made_[id][r].parts.push_back(first);
  }
  const Spread spread = n.op->spread(call);
  for (std::size_t r = 0; r < n.results.size(); ++r) {
    if (!positions(n.results[r].dims).empty()) continue;
    Made& m = made_[id][r];
    const DimId gone = positions(space)[0];
    const auto how =
        std::find_if(spread.reduce.begin(), spread.reduce.end(), [&](const auto& x) { return x.first == gone; });
    if (how == spread.reduce.end()) refuse(id, "makes one of all positions");
    m = {.parts = {added(id, m.parts, how->second)}, .late = true};
  }
}

void Unroll::check(NodeId id, const DimSet& space, const std::optional<LooksBack>& back) const {
  const Node& n = g_.node(id);
  const Spread spread = n.op->spread({g_, n});
  DimSet own = positions(space);
  if (back) own = without(own, {back->over});
  for (DimId d : own)
    if (contains(spread.serial, d)) refuse(id, "mixes positions");
  const bool moves = n.op->layout_change;  // one dim becomes another one
  if (!moves && own.size() > 1) refuse(id, "brings positions together");
  if (n.op->regroups != Regroups::none)
    throw Error("segments", "rows of all positions travel to their experts together ({})", n.op->name)
        .hint("use parallel.expert_rows = \"gather\", or leave train.segments out")
        .about({"train.segments", "parallel.expert_rows"});
  for (std::size_t k = 0; k < n.operands.size(); ++k) {
    const Value v = n.operands[k];
    const Made& m = made_[v.node][v.result];
    if (m.late) refuse(id, "reads at every position what was made of all");
    if (positions(g_.type(v).dims).size() > 1) refuse(id, "reads pairs of positions");
    if (back && contains(g_.type(v).dims, back->over) && m.parts.size() == 1) refuse(id, "mixes positions");
  }
}

void Unroll::refuse(NodeId id, std::string_view why) const {
  throw Error("segments", "{} {}", g_.str(Value{id, 0}), why)
      .hint(
          "sequences can be cut where what a position becomes depends on itself, and by causal attention on those "
          "before it: leave train.segments out")
      .about({"train.segments"});
}

// Laid out as the dim that it is a part of.
Dim Unroll::of_one(DimId d, std::string_view suffix) const {
  Dim p = g_.dim(d);
  p.parent = p.name, p.minus.clear(), p.plus.clear();
  p.name += suffix;
  return p;
}

DimId Unroll::part(DimId d, int segment) {
  Dim p = of_one(d, fmt::format("#{}", segment));
  p.size = sizes_[std::size_t(segment)], p.first = starts_[std::size_t(segment)];
  return b_.intern(p);
}

DimId Unroll::whole(DimId d) {
  const Dim& all = g_.dim(d);
  return all.is_whole ? d : b_.intern(all.whole(all.name + "#all"));
}

DimId Unroll::up_to(DimId d, int segment) {
  if (segment == 0) return part(d, 0);
  Dim p = of_one(d, fmt::format("#:{}", segment + 1));
  p.size = starts_[std::size_t(segment)] + sizes_[std::size_t(segment)];
  return b_.intern(p);
}

Dim Unroll::whole_part(DimId d, int segment) {
  const Dim p = b_.graph.dim(part(d, segment));
  if (p.is_whole) return p;
  Dim w = p.whole(p.name + "/all");
  w.first = p.first;
  b_.intern(w);
  return w;
}

void Unroll::stand_at(const Node& n, int segment) {
  b_.scope = n.scope;
  b_.force_piece = piece(n, segment);
}

Value Unroll::emit(const Node& n, const std::vector<Value>& operands, const DimNames& names, std::uint16_t piece) {
  b_.scope = n.scope;
  b_.force_piece = piece;
  std::vector<Tensor> in;
  for (Value v : operands) in.push_back(tensor(v));
  return b_.emit(*n.op, in, n.attrs.renamed(names)).value;
}

Value Unroll::read(Value old, int segment) {
  const Made& m = made(old);
  if (m.parts.size() > 1) return m.parts[std::size_t(segment)];
  const DimSet own = positions(g_.type(old).dims);
  return own.empty() ? m.parts[0] : cut(old, own[0], segment);
}

Value Unroll::seen(Value old, DimId over, int segment) {
  const Value own = made(old).parts[std::size_t(segment)];
  if (segment == 0) return own;
  const auto known = seen_.find({old, segment});
  if (known != seen_.end()) return known->second;
  const Value before = seen(old, over, segment - 1);
  const DimId all = up_to(over, segment);
  stand_at(g_.node(old), segment);
  const Dims both{b_.graph.dim(up_to(over, segment - 1)), b_.graph.dim(part(over, segment))};
  const Dim to = b_.graph.dim(all);
  return seen_[{old, segment}] = concat({tensor(before), tensor(own)}, both, to).value;
}

Value Unroll::cut(Value old, DimId d, int segment) {
  const auto [it, fresh] = cuts_.try_emplace({old, segment});
  if (!fresh) return it->second;
  stand_at(g_.node(old), segment);
  const Dim whole_here = whole_part(d, segment), here = b_.graph.dim(part(d, segment));
  const Dim from = b_.graph.dim(whole(d));
  const Tensor x = slice(tensor(made(old).parts[0]), from, whole_here, starts_[std::size_t(segment)]);
  return it->second = rename(x, whole_here, here).value;
}

Value Unroll::added(NodeId id, const std::vector<Value>& parts, Reduce how) {
  Tensor all = tensor(parts[0]);
  for (int s = 1; s < segments(); ++s) {
    stand_at(g_.node(id), s);
    const Tensor more = tensor(parts[std::size_t(s)]);
    all = how == Reduce::sum ? all + more : maximum(all, more);
  }
  return all.value;
}

Value Unroll::joined(Value old) {
  const Node& n = g_.node(old);
  const DimId d = positions(g_.type(old).dims)[0];
  std::vector<Tensor> parts;
  Dims dims;
  for (int s = 0; s < segments(); ++s) {
    stand_at(n, s);
    dims.push_back(whole_part(d, s));
    parts.push_back(rename(tensor(made(old).parts[std::size_t(s)]), b_.graph.dim(part(d, s)), dims.back()));
  }
  return concat(parts, dims, b_.graph.dim(whole(d))).value;
}

Value Unroll::operator()(Value old) {
  const Made& m = made(old);
  return m.parts.size() == 1 ? m.parts[0] : m.alike ? m.parts.back() : joined(old);
}

}  // namespace stretto

#include "stretto/graphs/inner/kinds.h"

#include <algorithm>
#include <cmath>

#include "stretto/ops/all.h"
#include "stretto/ops/constant.h"

namespace stretto {

std::vector<Tensor> NodeValues::all() const {
  std::vector<Tensor> values;
  for (int i = 0; i < operands(); ++i) values.push_back(in(i));
  return values;
}

std::optional<Dim> NodeValues::dim_if(std::string_view name) const {
  const GraphDimIndex* i = find<GraphDimIndex>(name);
  return i ? std::optional(at(*i)) : std::nullopt;
}

Dims NodeValues::dims(std::string_view name) const {
  Dims all;
  if (const auto* indices = find<std::vector<GraphDimIndex>>(name))
    for (const GraphDimIndex i : *indices) all.push_back(at(i));
  return all;
}

namespace {

using Values = const NodeValues&;
using Type = AttributeRule::Type;
constexpr AttributeRule needs(Type type, std::string_view name) { return {type, name, true}; }
constexpr AttributeRule takes(Type type, std::string_view name) { return {type, name, false}; }

template <Tensor (*f)(Tensor)>
Tensor of_one(Values v) {
  return f(v.in(0));
}

// A number has the type of the other operand.
Tensor operand(Values v, int i) {
  return v.is_number(i) ? constant(v.t.builder, v.number(i), v.in(1 - i).dtype()) : v.in(i);
}
template <Tensor (*f)(Tensor, Tensor)>
Tensor of_two(Values v) {
  return f(operand(v, 0), operand(v, 1));
}
Tensor add_two(Tensor a, Tensor b) { return a + b; }
Tensor subtract(Tensor a, Tensor b) { return a - b; }
Tensor multiply(Tensor a, Tensor b) { return a * b; }
Tensor divide(Tensor a, Tensor b) { return a / b; }
Tensor negative(Tensor x) { return -x; }

Tensor make_where(Values v) {
  if (v.is_number(1)) return where(v.in(0), v.number(1), v.in(2));
  if (v.is_number(2)) return where(v.in(0), v.in(1), v.number(2));
  return where(v.in(0), v.in(1), v.in(2));
}

Tensor make_param(Values v) {
  return v.t.param(v.text("name"), v.dims("dims"),
                   {.decay = v.value("decay", 1.0),
                    .trainable = v.value("train", true),
                    .rate = v.value("rate", std::string("lr"))});
}

Tensor make_observe(Values v) {
  const double momentum = v.value("momentum", 0.1);
  v.t.observe(v.in(0), v.in(1),
              [momentum](Tensor value, Tensor seen) { return value * (1 - momentum) + seen * momentum; });
  return v.in(0);
}

// Every pair of elements: no dim is summed, those of both are kept.
Tensor make_outer(Values v) {
  const DimSet a = v.in(0).type().dims, b = v.in(1).type().dims;
  DimSet both;
  for (const DimId d : b)
    if (contains(a, d)) both.push_back(d);
  return contract_into_order(v.in(0), v.in(1), {}, both, joined(a, b));
}

Tensor make_attention(Values v) {
  const bool since = v.value("since", false), until = v.value("until", false);
  if (v.operands() != 3 + since + until)
    throw Error("attention", "has {} operands instead of {}: q, k, v{}{}", v.operands(), 3 + since + until,
                since ? ", since" : "", until ? ", until" : "");
  AttentionOptions o{.query = v.dim("query"), .key = v.dim("key"), .head = v.dim("head"), .value = v.dim_if("value")};
  o.causal = v.value("causal", false);
  o.scale = v.value("scale", 1 / std::sqrt(1.0 * o.head.size));
  o.window = v.whole("window");
  o.softcap = v.value("softcap", 0.0);
  AttentionExtras e;
  if (since) e.since = v.in(3);
  if (until) e.until = v.in(3 + since);
  return attention(v.in(0), v.in(1), v.in(2), o, e);
}

Tensor make_rotary(Values v) {
  const RotaryOptions o{.frequencies = v.value("frequencies", std::vector<double>{}),
                        .scale = v.value("scale", 1.0),
                        .interleaved = v.value("interleaved", false)};
  return rotary(v.in(0), v.dim("seq"), v.dim("head"), o);
}

Tensor make_rename(Values v) {
  const Dims from = v.dims("from"), to = v.dims("to");
  if (from.size() != to.size())
    throw Error("rename", "{} dims are renamed to {}", from.size(), to.size()).hint("'from' and 'to' go in pairs");
  std::vector<Rename> pairs;
  for (std::size_t i = 0; i < from.size(); ++i) pairs.push_back({from[i], to[i]});
  return rename(v.in(0), pairs);
}

// Steps and such, of which every number is whole.
std::vector<i64> whole_numbers(Values v, std::string_view name) {
  std::vector<i64> all;
  for (const double x : v.value(name, std::vector<double>{})) {
    if (!(std::abs(x) < 1e15) || x != std::floor(x))
      throw Error("graph", "{} has the number {}", name, x).hint("whole numbers");
    all.push_back(static_cast<i64>(x));
  }
  return all;
}

Tensor make_slice(Values v) {
  const i64 step = v.whole("step", 1), start = v.whole("start");
  if (step == 1) return slice(v.in(0), v.dim("from"), v.dim("to"), start);
  return unfold(v.in(0), v.dim("from"), {v.dim("to")}, {step}, start);
}

Tensor make_cast(Values v) {
  const std::string& to = v.text("to");
  if (to == "i32") return cast(v.in(0), i32);
  if (to == "f64") return cast(v.in(0), f64);
  if (to == "run") return cast(v.in(0), v.t.dtype());
  throw Error("cast", "there is no type '{}'", to).hint("\"i32\", \"f64\", or \"run\": the run's type");
}

const std::vector<NodeKind> kinds{
    {"abs", 1, 1, {}, [](Values v) { return v.in(0) * sign(v.in(0)); }},
    {"add", 2, 2, {}, of_two<add_two>, true},
    {"attention",
     3,
     5,
     {needs(Type::dim, "query"), needs(Type::dim, "key"), needs(Type::dim, "head"), takes(Type::dim, "value"),
      takes(Type::flag, "causal"), takes(Type::number, "scale"), takes(Type::whole, "window"),
      takes(Type::number, "softcap"), takes(Type::flag, "since"), takes(Type::flag, "until")},
     make_attention},
    {"boundary", 1, 1, {}, of_one<boundary>},
    {"broadcast", 1, 1, {needs(Type::dims, "dims")}, [](Values v) { return broadcast(v.in(0), v.dims("dims")); }},
    {"cast", 1, 1, {needs(Type::text, "to")}, make_cast},
    {"choose",
     3,
     3,
     {needs(Type::dim, "expert"), needs(Type::dims, "out")},
     [](Values v) { return choose(v.in(0), v.in(1), v.in(2), v.dim("expert"), v.dims("out")); }},
    {"concat",
     1,
     4096,
     {needs(Type::dims, "along"), needs(Type::dim, "to")},
     [](Values v) { return concat(v.all(), v.dims("along"), v.dim("to")); }},
    {"contract",
     2,
     2,
     {needs(Type::dims, "over"), takes(Type::dims, "along")},
     [](Values v) { return contract(v.in(0), v.in(1), v.dims("over"), along(v.dims("along"))); }},
    {"cos", 1, 1, {}, of_one<cos>},
    {"div", 2, 2, {}, of_two<divide>, true},
    {"dropout",
     1,
     1,
     {needs(Type::number, "rate"), needs(Type::text, "name")},
     [](Values v) { return v.t.dropout(v.in(0), v.value("rate", 0.0), v.text("name")); }},
    {"embedding",
     2,
     2,
     {needs(Type::dim, "vocab")},
     [](Values v) { return embedding(v.in(0), v.in(1), v.dim("vocab")); }},
    {"equal", 2, 2, {}, of_two<equal>, true},
    {"erf", 1, 1, {}, of_one<erf>},
    {"exp", 1, 1, {}, of_one<exp>},
    {"fold",
     1,
     1,
     {needs(Type::dims, "from"), needs(Type::dim, "to"), needs(Type::numbers, "steps"), takes(Type::whole, "start")},
     [](Values v) { return fold(v.in(0), v.dims("from"), v.dim("to"), whole_numbers(v, "steps"), v.whole("start")); }},
    {"gelu", 1, 1, {}, of_one<gelu>},
    {"gelu_erf", 1, 1, {}, of_one<gelu_erf>},
    {"greater", 2, 2, {}, of_two<greater>, true},
    {"greater_equal", 2, 2, {}, of_two<greater_equal>, true},
    {"ids",
     0,
     0,
     {needs(Type::text, "name"), needs(Type::dims, "dims")},
     [](Values v) { return v.t.ids(v.text("name"), v.dims("dims")); }},
    {"index",
     1,
     1,
     {needs(Type::dim, "dim"), needs(Type::whole, "at")},
     [](Values v) { return index(v.in(0), v.dim("dim"), v.whole("at")); }},
    {"input",
     0,
     0,
     {needs(Type::text, "name"), needs(Type::dims, "dims")},
     [](Values v) { return v.t.input(v.text("name"), v.dims("dims")); }},
    {"iota", 0, 0, {needs(Type::dim, "dim")}, [](Values v) { return iota(v.t.builder, v.dim("dim")); }},
    {"layer_norm",
     3,
     3,
     {needs(Type::dim, "over"), takes(Type::number, "eps")},
     [](Values v) { return layer_norm(v.in(0), v.in(1), v.in(2), v.dim("over"), v.value("eps", 1e-5)); }},
    {"less", 2, 2, {}, of_two<less>, true},
    {"less_equal", 2, 2, {}, of_two<less_equal>, true},
    {"log", 1, 1, {}, of_one<log>},
    {"max", 1, 1, {needs(Type::dims, "over")}, [](Values v) { return max(v.in(0), v.dims("over")); }},
    {"maximum", 2, 2, {}, of_two<maximum>, true},
    {"mean", 1, 1, {needs(Type::dims, "over")}, [](Values v) { return mean(v.in(0), v.dims("over")); }},
    {"minimum", 2, 2, {}, of_two<minimum>, true},
    {"mul", 2, 2, {}, of_two<multiply>, true},
    {"neg", 1, 1, {}, of_one<negative>},
    {"not_equal", 2, 2, {}, of_two<not_equal>, true},
    {"observe", 2, 2, {takes(Type::number, "momentum")}, make_observe},
    {"outer", 2, 2, {}, make_outer},
    {"pad",
     1,
     1,
     {needs(Type::dim, "from"), needs(Type::dim, "to"), takes(Type::whole, "start")},
     [](Values v) { return pad(v.in(0), v.dim("from"), v.dim("to"), v.whole("start")); }},
    {"param",
     0,
     0,
     {needs(Type::text, "name"), needs(Type::dims, "dims"), takes(Type::number, "decay"), takes(Type::flag, "train"),
      takes(Type::text, "rate")},
     make_param},
    {"pick",
     2,
     2,
     {needs(Type::dims, "over"), needs(Type::dims, "out")},
     [](Values v) { return pick(v.in(0), v.in(1), v.dims("over"), v.dims("out")); }},
    {"refold",
     1,
     1,
     {needs(Type::dims, "from"), needs(Type::dims, "to")},
     [](Values v) { return refold(v.in(0), v.dims("from"), v.dims("to")); }},
    {"relu", 1, 1, {}, of_one<relu>},
    {"rename", 1, 1, {needs(Type::dims, "from"), needs(Type::dims, "to")}, make_rename},
    {"rms_norm",
     2,
     2,
     {needs(Type::dim, "over"), takes(Type::number, "eps")},
     [](Values v) { return rms_norm(v.in(0), v.in(1), v.dim("over"), v.value("eps", 1e-6)); }},
    {"rotary",
     1,
     1,
     {needs(Type::dim, "seq"), needs(Type::dim, "head"), needs(Type::numbers, "frequencies"),
      takes(Type::number, "scale"), takes(Type::flag, "interleaved")},
     make_rotary},
    {"rsqrt", 1, 1, {}, of_one<rsqrt>},
    {"sigmoid", 1, 1, {}, of_one<sigmoid>},
    {"sign", 1, 1, {}, of_one<sign>},
    {"silu", 1, 1, {}, of_one<silu>},
    {"sin", 1, 1, {}, of_one<sin>},
    {"slice",
     1,
     1,
     {needs(Type::dim, "from"), needs(Type::dim, "to"), takes(Type::whole, "start"), takes(Type::whole, "step")},
     make_slice},
    {"softmax", 1, 1, {needs(Type::dim, "over")}, [](Values v) { return softmax(v.in(0), v.dim("over")); }},
    {"sqrt", 1, 1, {}, of_one<sqrt>},
    {"square", 1, 1, {}, of_one<square>},
    {"stack", 1, 4096, {needs(Type::dim, "dim")}, [](Values v) { return stack(v.all(), v.dim("dim")); }},
    {"state",
     0,
     0,
     {needs(Type::text, "name"), needs(Type::dims, "dims")},
     [](Values v) { return v.t.state(v.text("name"), v.dims("dims")); }},
    {"stop_gradient", 1, 1, {}, of_one<stop_gradient>},
    {"sub", 2, 2, {}, of_two<subtract>, true},
    {"sum", 1, 1, {needs(Type::dims, "over")}, [](Values v) { return sum(v.in(0), v.dims("over")); }},
    {"tanh", 1, 1, {}, of_one<tanh>},
    {"top_k",
     1,
     1,
     {needs(Type::dim, "over"), needs(Type::dim, "choice")},
     [](Values v) { return top_k(v.in(0), v.dim("over"), v.dim("choice")); }},
    {"unfold",
     1,
     1,
     {needs(Type::dim, "from"), needs(Type::dims, "to"), needs(Type::numbers, "steps"), takes(Type::whole, "start")},
     [](Values v) {
       return unfold(v.in(0), v.dim("from"), v.dims("to"), whole_numbers(v, "steps"), v.whole("start"));
     }},
    {"unpick",
     2,
     2,
     {needs(Type::dims, "over"), needs(Type::dims, "out")},
     [](Values v) { return unpick(v.in(0), v.in(1), v.dims("over"), v.dims("out")); }},
    {"values",
     0,
     0,
     {needs(Type::dims, "dims"), needs(Type::numbers, "numbers"), takes(Type::flag, "whole")},
     [](Values v) {
       return values(v.t.builder, v.dims("dims"), v.value("whole", false) ? i32 : v.t.dtype(),
                     v.value("numbers", std::vector<double>{}));
     }},
    {"where", 3, 3, {}, make_where, true},
};

const std::vector<TermKind> terms{
    {"cross_entropy",
     2,
     {needs(Type::dim, "over"), takes(Type::whole, "ignore")},
     [](Values v) { return cross_entropy(v.in(0), v.in(1), v.dim("over"), v.whole("ignore", -100)); }},
    {"mean", 1, {}, [](Values v) { return mean_of(v.in(0)); }},
    {"ratio", 2, {}, [](Values v) { return ratio_of(v.in(0), v.in(1)); }},
};

}  // namespace

std::span<const NodeKind> node_kinds() { return kinds; }
std::span<const TermKind> term_kinds() { return terms; }

const NodeKind* kind_of(std::string_view op) {
  const auto at = std::ranges::lower_bound(kinds, op, {}, &NodeKind::op);  // in the order of their names
  return at != kinds.end() && at->op == op ? &*at : nullptr;
}

}  // namespace stretto

#include "stretto/ops/dropout.h"

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {
namespace {

bool taken(const Graph& g, const std::string& name) {
  for (const Node& n : g.nodes)
    if (n.op == &dropout_op && !n.backward && n.attrs.as<DropoutAttrs>().name == name) return true;
  return false;
}

std::string scoped_name(const Builder& b, std::string_view name) {
  const std::string& scope = b.graph.scopes[b.scope];
  const auto scoped = [&](std::string_view n) { return fmt::format("{}{}{}", scope, scope.empty() ? "" : ".", n); };
  if (!name.empty()) {
    if (taken(b.graph, scoped(name)))
      throw Error("dropout", "'{}' is the name of another dropout: both would zero the same elements", scoped(name))
          .hint("give it another name, or none, or put it under a Scope");
    return scoped(name);
  }
  for (int i = 0;; ++i)
    if (const std::string n = scoped(fmt::format("dropout{}", i)); !taken(b.graph, n)) return n;
}

Tensor emit(Tensor x, double rate, std::string_view name, DimSet batch) {
  Builder& b = *x.builder;
  if (!(rate >= 0 && rate < 1))
    throw Error("dropout", "the rate for {} is {}", x.str(), rate).hint("give a probability: 0 or more, below 1");
  if (rate == 0) return x;
  return b.emit(dropout_op, {x}, DropoutAttrs{.rate = rate, .name = scoped_name(b, name), .batch = std::move(batch)});
}

}  // namespace

Tensor dropout(Tensor x, double rate, std::string_view name) {
  builder_of("dropout", {x});
  const DimSet& dims = x.type().dims;
  return emit(x, rate, name, dims.empty() ? DimSet{} : DimSet{dims[0]});
}

Tensor dropout(Tensor x, double rate, std::string_view name, const Dim& batch) {
  return emit(x, rate, name, {rules::dim_of("dropout", x, batch)});
}

constinit const Op dropout_op{
    .name = "dropout",
    .infer = rules::float_unary,
    .vjp = [](const Vjp& v) { return std::vector{v.builder.emit(dropout_op, {v.grad[0]}, v.attrs<DropoutAttrs>())}; },
    .spread = rules::nothing,
    .cost = rules::streaming<20>,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 5}, c{"c", 7};
          e.add(dropout(e.real({a, b, c}), 0.3));
          e.add(dropout(e.real({a, b}), 0.5, "named"));
          e.add(dropout(e.real({a, b, c}), 0.5, "second", b));
          e.add(dropout(e.real({}), 0.5));
        },
    .in_place = rules::first_in_place,
    .key =
        [](const Attrs& a) {
          return RandomKey{a.as<DropoutAttrs>().name, a.as<DropoutAttrs>().key};
        },
    .rekeyed =
        [](const Attrs& a, RandomKey k) {
          DropoutAttrs d = a.as<DropoutAttrs>();
          d.name = std::move(k.name);
          d.key = k.number;
          return Attrs(d);
        },
};

}  // namespace stretto

#include "ops/oracle.h"

#include <algorithm>

#include "stretto/ops/constant.h"
#include "stretto/ops/fused.h"

namespace stretto::test {

i64 At::operator[](DimId d) const {
  for (const auto& [dim, index] : indices_)
    if (dim == d) return index;
  throw Error("oracle", "an element has no index along dim {}", d.value);
}

At At::with(DimId d, i64 index) const {
  At other = *this;
  for (auto& [dim, i] : other.indices_)
    if (dim == d) return i = index, other;
  other.indices_.emplace_back(d, index);
  return other;
}

double Element::in(int operand, const At& a) const {
  i64 offset = 0;
  for (DimId d : dims(operand)) {
    STRETTO_ASSERT(a[d] >= 0 && a[d] < size(d), "an oracle reads outside of its operand");
    offset = offset * graph.size(d) + a[d];
  }
  return operands[operand].at(offset);
}

void Element::each(const DimSet& over, const At& from, const std::function<void(const At&)>& f) const {
  if (over.empty()) return f(from);
  const DimSet rest(over.begin() + 1, over.end());
  for (i64 i = 0; i < size(over[0]); ++i) each(rest, from.with(over[0], i), f);
}

double Element::sum(const DimSet& over, const At& from, const std::function<double(const At&)>& f) const {
  double total = 0;
  each(over, from, [&](const At& a) { total += f(a); });
  return total;
}

namespace {

double pointwise(const Element& e) {
  std::vector<double> x;
  for (int i = 0; i < int(e.operands.size()); ++i) x.push_back(e.in(i));
  return e.node.op->value(x.data());
}

// Operands, then one value per step; a step names the values it takes.
double group(const Element& e) {
  const FusedAttrs& a = e.attrs<FusedAttrs>();
  std::vector<double> values;
  for (int i = 0; i < int(e.operands.size()); ++i) values.push_back(e.in(i));
  auto arg = a.args.begin();
  for (std::size_t step = 0; step < a.steps.size(); ++step) {
    std::vector<double> x;
    for (i64 k = 0; k < a.counts[step]; ++k) x.push_back(values[*arg++]);
    values.push_back(a.steps[step] == "constant" ? a.values[step] : op_named(a.steps[step])->value(x.data()));
  }
  return values[e.operands.size() + a.results[e.result]];
}

double constant(const Element& e) { return e.attrs<ConstantAttrs>().value; }

}  // namespace

std::vector<NamedOracle> named_oracles() {
  std::vector<NamedOracle> all;
  for (const auto part : {oracles_of_shapes(), oracles_of_sums(), oracles_of_attention(), oracles_of_ids()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::function<double(const Element&)> oracle_of(const Op& op) {
  if (op.value) return pointwise;
  if (op.group) return group;
  if (op.leaf == Leaf::constant) return constant;
  for (const NamedOracle& o : named_oracles())
    if (o.op == op.name) return o.value;
  return {};
}

}  // namespace stretto::test

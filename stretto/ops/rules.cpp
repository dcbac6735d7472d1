#include "stretto/ops/inner/rules.h"

#include <algorithm>
#include <cmath>

#include "stretto/base/text.h"
#include "stretto/ops/constant.h"

namespace stretto::rules {

DimSet widest_dims(const OpCall& c) {
  int widest = 0;
  for (int i = 1; i < c.inputs(); ++i)
    if (c.in(i).dims.size() > c.in(widest).dims.size()) widest = i;
  const DimSet& all = c.in(widest).dims;
  for (int i = 0; i < c.inputs(); ++i)
    for (DimId d : c.in(i).dims)
      if (!contains(all, d)) {
        const std::string& name = c.graph.dim(d).name;
        throw Error(c.node.op->name, "{} has dim '{}' that {} lacks, and the other way round", c.describe(i), name,
                    c.describe(widest))
            .hint("rename '{}' if the two mean the same, or broadcast one operand explicitly", name);
      }
  return all;
}

std::vector<Type> pointwise(const OpCall& c) {
  for (int i = 1; i < c.inputs(); ++i)
    if (c.in(i).dtype != c.in(0).dtype)
      throw Error(c.node.op->name, "{} is {} and {} is {}", c.describe(0), name_of(c.in(0).dtype), c.describe(i),
                  name_of(c.in(i).dtype))
          .hint("cast one of them: cast(x, {})", name_of(c.in(0).dtype));
  return {{c.in(0).dtype, widest_dims(c)}};
}

std::vector<Type> float_pointwise(const OpCall& c) {
  float_unary(c);
  return pointwise(c);
}

std::vector<Type> same_as_first(const OpCall& c) { return {c.in(0)}; }

std::vector<Type> float_unary(const OpCall& c) {
  if (!is_float(c.in(0).dtype))
    throw Error(c.node.op->name, "{} holds integers", c.describe(0)).hint("cast it first: cast(x, f32)");
  return {c.in(0)};
}

Tensor number(std::string_view where, double value, Tensor like) {
  Builder& b = builder_of(where, {like});
  if (like.dtype() == i32 && value != std::trunc(value))
    throw Error(where, "{} holds integers and {} is none", like.str(), value).hint("cast it first: cast(x, f32)");
  return constant(b, value, like.dtype());
}

DimId dim_of(std::string_view where, Tensor x, const Dim& named) {
  builder_of(where, {x});
  std::vector<std::string> known;
  for (DimId d : x.type().dims) {
    known.push_back(x.builder->graph.dim(d).name);
    if (known.back() == named.name) return x.builder->intern(named);  // refuses another size
  }
  const std::optional<std::string> near = nearest(named.name, known);
  throw Error(where, "{} has no dim '{}'", x.str(), named.name)
      .hint("{}its dims are {}", near ? fmt::format("did you mean '{}'? ", *near) : "",
            known.empty() ? "none" : join(known, ", "));
}

DimSet dims_of(std::string_view where, Tensor x, const Dims& named) {
  DimSet set;
  for (const Dim& d : named) {
    const DimId id = dim_of(where, x, d);
    if (contains(set, id)) throw Error(where, "dim '{}' of {} is named twice", d.name, x.str()).hint("name it once");
    set.push_back(id);
  }
  return set;
}

DimSet inserted(const OpCall& c, DimId added, i64 place) {
  DimSet dims = c.in(0).dims;
  if (place < 0 || place > i64(dims.size()))
    throw Error(c.node.op->name, "{} has no position {} for dim '{}'", c.describe(0), place, c.graph.dim(added).name)
        .hint("0 is before its first dim, {} after its last", dims.size());
  dims.insert(dims.begin() + place, added);
  return dims;
}

ViewMap by_name(const DimSet& operand, const DimSet& result) {
  ViewMap map{.from = {}, .start = std::vector<i64>(operand.size(), 0)};
  for (DimId d : result) map.from.push_back(find(operand, d));
  return map;
}

ViewMap in_order(const DimSet& operand) { return by_name(operand, operand); }

void vector_along(const OpCall& c, int i, DimId only) {
  if (c.in(i).dims != DimSet{only})
    throw Error(c.node.op->name, "operand {} is {}, not a vector along '{}'", i + 1, c.describe(i),
                c.graph.dim(only).name)
        .hint("give it the one dim {}", c.graph.dim(only).str());
  if (c.in(i).dtype != c.in(0).dtype)
    throw Error(c.node.op->name, "{} is {} and {} is {}", c.describe(0), name_of(c.in(0).dtype), c.describe(i),
                name_of(c.in(i).dtype))
        .hint("cast one of them: cast(x, {})", name_of(c.in(0).dtype));
}

}  // namespace stretto::rules

#include "stretto/ops/concat.h"

#include <algorithm>

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/slice.h"

namespace stretto {
namespace {
i64 start_of_part(const Graph& g, const ConcatAttrs& a, int operand) {
  i64 at = 0;
  for (int i = 0; i < operand; ++i) at += g.size(a.along[i]);
  return at;
}
}  // namespace

Tensor concat(const std::vector<Tensor>& parts, const Dims& along, const Dim& to) {
  if (parts.empty()) throw Error("concat", "there is nothing to concatenate").hint("give at least one tensor");
  if (along.size() != 1 && along.size() != parts.size())
    throw Error("concat", "{} tensors and {} dims", parts.size(), along.size())
        .hint("give one dim per tensor, or one for all");
  ConcatAttrs a;
  for (std::size_t i = 0; i < parts.size(); ++i)
    a.along.push_back(rules::dim_of("concat", parts[i], along[along.size() == 1 ? 0 : i]));
  Builder& b = builder_of("concat", {parts[0]});
  a.to = b.intern(to);
  return b.emit(concat_op, parts, std::move(a));
}

constinit const Op concat_op{
    .name = "concat",
    .infer =
        [](const OpCall& c) {
          const ConcatAttrs& a = c.attrs<ConcatAttrs>();
          const Dim& to = c.graph.dim(a.to);
          Type result = c.in(0);
          std::replace(result.dims.begin(), result.dims.end(), a.along[0], a.to);
          std::string sizes;
          bool padded = to.valid() != to.size;
          for (int i = 0; i < c.inputs(); ++i) {
            const Dim& d = c.graph.dim(a.along[i]);
            sizes += (i ? " + " : "") + d.str();
            padded = padded || d.valid() != d.size;
            DimSet dims = c.in(i).dims;
            std::replace(dims.begin(), dims.end(), a.along[i], a.to);
            if (c.in(i).dtype != result.dtype || !without(dims, result.dims).empty() ||
                !without(result.dims, dims).empty())
              throw Error("concat", "{} ({}) and {} ({}) differ in more than the dim that grows", c.describe(0),
                          name_of(c.in(0).dtype), c.describe(i), name_of(c.in(i).dtype))
                  .hint("the other dims and the types must be the same");
          }
          if (start_of_part(c.graph, a, c.inputs()) != to.size)
            throw Error("concat", "{} is not {}", sizes, to.str()).hint("the sizes of the parts must add up");
          if (padded)
            throw Error("concat", "{} into {}: a padded dim cannot be concatenated", sizes, to.str())
                .hint("slice the padding off first");
          return std::vector<Type>{result};
        },
    .vjp =
        [](const Vjp& v) {
          const ConcatAttrs a = v.attrs<ConcatAttrs>();
          std::vector<Tensor> parts(v.in.size());
          for (std::size_t i = 0; i < parts.size(); ++i)
            if (v.wanted[i])
              parts[i] = v.builder.emit(
                  slice_op, {v.grad[0]},
                  SliceAttrs{.from = a.to, .to = a.along[i], .start = start_of_part(v.builder.graph, a, int(i))});
          return parts;
        },
    .spread =
        [](const OpCall& c) {
          Spread s{.serial = joined({c.attrs<ConcatAttrs>().to}, c.attrs<ConcatAttrs>().along), .jointly = true};
          for (int i = 0; i < c.inputs(); ++i) s.linear.push_back(i);
          return s;
        },
    .cost = rules::streaming<0>,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 4}, c{"c", 2}, six{"six", 6}, eight{"eight", 8};
          e.add(concat({e.real({a, b}), e.real({a, c})}, {b, c}, six));
          e.add(concat({e.real({b, a}), e.real({a, c})}, {b, c}, six));
          const Tensor x = e.real({a, b});
          e.add(concat({x, x * 2.0}, b, eight));
        },
    .into =
        [](const OpCall& c, int operand) {
          const ConcatAttrs& a = c.attrs<ConcatAttrs>();
          DimSet dims = c.in(operand).dims;
          std::replace(dims.begin(), dims.end(), a.along[operand], a.to);
          ViewMap map = rules::by_name(c.out().dims, dims);
          map.start[position(c.out().dims, a.to)] = start_of_part(c.graph, a, operand);
          return map;
        },
};

}  // namespace stretto

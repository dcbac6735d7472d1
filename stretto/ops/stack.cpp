#include "stretto/ops/stack.h"

#include "stretto/ops/broadcast.h"
#include "stretto/ops/constant.h"
#include "stretto/ops/inner/rules.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor stack(const std::vector<Tensor>& parts, const Dim& dim, i64 position) {
  if (parts.empty())
    throw Error("stack", "there is nothing to stack").hint("give one tensor per element of '{}'", dim.name);
  Builder& b = builder_of("stack", {parts[0]});
  return b.emit(stack_op, parts, StackAttrs{.dim = b.intern(dim), .position = position});
}

std::vector<Tensor> unstack(Tensor x, const Dim& dim) {
  const DimId d = rules::dim_of("unstack", x, dim);
  const Tensor first = x.builder->emit(unstack_op, {x}, UnstackAttrs{.dim = d});
  std::vector<Tensor> parts;
  for (int i = 0; i < int(dim.size); ++i) parts.push_back(x.builder->result(first, i));
  return parts;
}

constinit const Op stack_op{
    .name = "stack",
    .infer =
        [](const OpCall& c) {
          const StackAttrs& a = c.attrs<StackAttrs>();
          if (c.inputs() != c.graph.size(a.dim))
            throw Error("stack", "{} tensors along dim {}", c.inputs(), c.graph.dim(a.dim).str())
                .hint("give one tensor per element of '{}'", c.graph.dim(a.dim).name);
          for (int i = 1; i < c.inputs(); ++i)
            if (c.in(i) != c.in(0))
              throw Error("stack", "{} ({}) and {} ({}) differ", c.describe(0), name_of(c.in(0).dtype), c.describe(i),
                          name_of(c.in(i).dtype))
                  .hint("all parts have the same dims in the same order and the same type");
          return std::vector<Type>{{c.in(0).dtype, rules::inserted(c, a.dim, a.position)}};
        },
    .vjp =
        [](const Vjp& v) {
          const Tensor first = v.builder.emit(unstack_op, {v.grad[0]}, UnstackAttrs{.dim = v.attrs<StackAttrs>().dim});
          std::vector<Tensor> parts;
          for (std::size_t i = 0; i < v.in.size(); ++i) parts.push_back(v.builder.result(first, int(i)));
          return parts;
        },
    .spread =
        [](const OpCall& c) {
          Spread s{.serial = {c.attrs<StackAttrs>().dim}, .jointly = true};
          for (int i = 0; i < c.inputs(); ++i) s.linear.push_back(i);
          return s;
        },
    .cost = rules::streaming<0>,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 4}, two{"two", 2}, three{"three", 3}, one{"one", 1};
          e.add(stack({e.real({a, b}), e.real({a, b}), e.real({a, b})}, three));
          e.add(stack({e.real({a, b}), e.real({a, b})}, two, 1));
          const Tensor x = e.real({a});
          e.add(stack({x, x * 2.0}, two, 1));
          e.add(stack({x}, one));
        },
    .into =
        [](const OpCall& c, int operand) {
          const StackAttrs& a = c.attrs<StackAttrs>();
          ViewMap map = rules::by_name(c.out().dims, c.in(operand).dims);
          map.start[a.position] = operand;
          return map;
        },
};

constinit const Op unstack_op{
    .name = "unstack",
    .infer =
        [](const OpCall& c) {
          const DimId d = c.attrs<UnstackAttrs>().dim;
          if (c.graph.size(d) > 255)
            throw Error("unstack", "dim {} of {} has too many parts", c.graph.dim(d).str(), c.describe(0))
                .hint("at most 255; use index for single ones");
          return std::vector<Type>(std::size_t(c.graph.size(d)), Type{c.in(0).dtype, without(c.in(0).dims, {d})});
        },
    .vjp =
        [](const Vjp& v) {
          const DimId d = v.attrs<UnstackAttrs>().dim;
          std::vector<Tensor> parts(v.grad.begin(), v.grad.end());
          for (std::size_t i = 0; i < parts.size(); ++i)
            if (!parts[i]) {
              const Type type = v.out[i].type();
              parts[i] = broadcast_to(constant(v.builder, 0, type.dtype), type.dims);
            }
          const i64 place = position(v.in[0].type().dims, d);
          return std::vector{v.builder.emit(stack_op, parts, StackAttrs{.dim = d, .position = place})};
        },
    .spread = [](const OpCall& c) { return Spread{.serial = {c.attrs<UnstackAttrs>().dim}, .linear = {0}}; },
    .cost = rules::free,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 4};
          const auto [x, y, z] = unstack<3>(e.real({a, b}), a);
          e.add({x, y, z});
          const std::vector<Tensor> columns = unstack(e.real({a, b}), b);
          e.add(columns[0] * columns[3]);
        },
    .view =
        [](const OpCall& c, int result) {
          ViewMap map = rules::by_name(c.in(0).dims, c.out(result).dims);
          map.start[position(c.in(0).dims, c.attrs<UnstackAttrs>().dim)] = result;
          return map;
        },
};

}  // namespace stretto

#include "stretto/ops/values.h"

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {

std::string attr_str(const Graph&, const Numbers& v) { return fmt::format("{} numbers", v.all.size()); }

Tensor values(Builder& b, const Dims& dims, DType dtype, std::vector<double> numbers) {
  ValuesAttrs a{.dims = b.intern(dims), .dtype = dtype};
  std::size_t elements = 1;
  for (const Dim& d : dims) a.sizes.push_back(d.valid()), elements *= d.valid();
  if (elements != numbers.size())
    throw Error("values", "{} numbers are given for {}", numbers.size(), dims.str()).hint("it has {}", elements);
  a.numbers.all = std::move(numbers);
  return b.emit(values_op, {}, std::move(a));
}

constinit const Op values_op{
    .name = "values",
    .infer =
        [](const OpCall& c) {
          const ValuesAttrs& a = c.attrs<ValuesAttrs>();
          for (std::size_t d = 0; d < a.dims.size(); ++d)
            if (const Dim& dim = c.graph.dim(a.dims[d]); dim.valid() != a.sizes[d])
              throw Error("values", "numbers for {} along '{}', which is {}", a.sizes[d], dim.name, dim.str())
                  .hint("an array's sizes are those of the model: they cannot be bound to others");
          return std::vector<Type>{{a.dtype, a.dims}};
        },
    .spread = rules::nothing,
    .cost = rules::streaming<0>,
    .examples =
        [](Examples& e) {
          e.add(values(e.builder, {{"a", 2}, {"b", 4}}, e.dtype, {0, 1, -2, 3, 0.5, 5, 6, -7}));
          e.add(values(e.builder, {{"a", 2}}, i32, {7, -3}));
        },
    .no_gradient = true,
};

}  // namespace stretto

#include "stretto/ops/labels.h"

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {

Tensor labels(Tensor y, DimId over, i64 ignore) {
  return builder_of("labels", {y}).emit(labels_op, {y}, LabelsAttrs{over, ignore});
}

Error no_class(i64 label, std::string_view dim, i64 classes, i64 ignore) {
  return Error("cross_entropy", "label {} is outside of dim '{}', which has {} classes", label, dim, classes)
      .hint("positions without a label hold {}", ignore);
}

constinit const Op labels_op{
    .name = "labels",
    .infer =
        [](const OpCall& c) {
          STRETTO_ASSERT(c.in(0).dtype == i32, "labels are i32");
          return std::vector<Type>{c.in(0)};
        },
    .spread = rules::nothing,
    .cost = rules::streaming<1>,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 4};
          const DimId v = e.builder.intern(Dim{"v", 7}), one = e.builder.intern(Dim{"one", 1});
          e.add(labels(e.ids({a, b}, 7), v, -100));
          e.add(labels(e.ids({}, 1), one, 0));
        },
    .no_gradient = true,
    .out_of_range =
        [](const OpCall& c, i64 label, i64 classes) {
          return no_class(label, c.graph.dim(c.attrs<LabelsAttrs>().over).name, classes, c.attrs<LabelsAttrs>().ignore);
        },
};

}  // namespace stretto

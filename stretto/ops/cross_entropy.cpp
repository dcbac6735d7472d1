#include "stretto/ops/cross_entropy.h"

#include <algorithm>

#include "stretto/ops/add.h"
#include "stretto/ops/broadcast.h"
#include "stretto/ops/cast.h"
#include "stretto/ops/compare.h"
#include "stretto/ops/constant.h"
#include "stretto/ops/cross_entropy_grad.h"
#include "stretto/ops/div.h"
#include "stretto/ops/exp.h"
#include "stretto/ops/inner/rules.h"
#include "stretto/ops/iota.h"
#include "stretto/ops/labels.h"
#include "stretto/ops/log.h"
#include "stretto/ops/max.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/ops.h"
#include "stretto/ops/pick.h"
#include "stretto/ops/sub.h"
#include "stretto/ops/sum.h"
#include "stretto/ops/where.h"

namespace stretto {

CrossEntropy cross_entropy_terms(Tensor logits, Tensor labels, Tensor scale, Dim over, i64 ignore) {
  Builder& b = builder_of("cross_entropy", {logits, labels, scale});
  const Tensor sum = b.emit(cross_entropy_op, {logits, labels, scale},
                            CrossEntropyAttrs{rules::dim_of("cross_entropy", logits, over), ignore});
  return {sum, b.result(sum, 1)};
}

CrossEntropy decomposed_cross_entropy(Tensor logits, Tensor given, Tensor seed, DimId over, i64 ignore) {
  Builder& b = *logits.builder;
  const DType t = logits.dtype();
  const Tensor classes = labels(given, over, ignore);
  const Tensor zero = constant(b, 0, t), counts = not_equal(classes, double(ignore));
  const Tensor here = equal(broadcast_to(classes, logits.type().dims), iota(b, b.graph.dim(over)));
  const Tensor top = max_over(logits, {over}), shifted = logits - top;
  // Read before the logits are written over.
  const Tensor label = b.emit(pick_op, {logits, classes}, PickAttrs{{over}, classes.type().dims}) - top;
  const Tensor e = exp(shifted), total = sum_over(e, {over}), each = where(counts, log(total) - label, zero);
  const Tensor softmax = e / total, one = constant(b, 1, t);
  const Tensor difference = softmax - where(here, one, zero);
  return {sum_all(cast(each, f64)), where(counts, difference, zero) * cast(seed, t)};
}

constinit const Op cross_entropy_op{
    .name = "cross_entropy",
    .infer =
        [](const OpCall& c) {
          const DimId over = c.attrs<CrossEntropyAttrs>().over;
          if (c.in(1).dtype != i32)
            throw Error("cross_entropy", "labels {} are {}", c.describe(1), name_of(c.in(1).dtype))
                .hint("the operands are logits, labels; labels are i32: t.ids(name, dims)");
          rules::float_unary(c);
          const DimSet rows = without(c.in(0).dims, {over}), &labels = c.in(1).dims;
          if (rows.size() != labels.size() || !std::is_permutation(rows.begin(), rows.end(), labels.begin()))
            throw Error("cross_entropy", "logits {} and labels {} differ in more than dim '{}'", c.describe(0),
                        c.describe(1), c.graph.dim(over).name)
                .hint("labels have all dims of the logits but '{}'", c.graph.dim(over).name);
          STRETTO_ASSERT(c.in(2) == (Type{f64, {}}), "scale is an f64 scalar");
          return std::vector<Type>{{f64, {}}, c.in(0)};
        },
    .vjp =
        [](const Vjp& v) {
          const CrossEntropyAttrs a = v.attrs<CrossEntropyAttrs>();
          const bool seeded = v.grad[0].value == v.in[2].value;
          return std::vector{seeded ? v.out[1] : cross_entropy_grad(v.in[0], v.in[1], v.grad[0], a.over, a.ignore),
                             Tensor{}, Tensor{}};
        },
    .spread =
        [](const OpCall& c) {
          Spread s{.serial = {c.attrs<CrossEntropyAttrs>().over}};
          for (DimId d : c.in(1).dims) s.reduce.push_back({d, Reduce::sum});
          return s;
        },
    .cost =
        [](const OpCall& c) {
          Cost cost = c.streaming(0);
          cost.flops = 20.0 * c.elements(c.in(0));
          return cost;
        },
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 2}, v{"v", 7}, wide{"wide", 40}, one{"one", 1};
          const auto example = [&](Tensor logits, Tensor labels, Dim over, i64 ignore) {
            e.add(cross_entropy_terms(logits, labels, constant(e.builder, 0.5, f64), over, ignore).sum);
          };
          example(e.real({a, v}, -3, 3), e.ids({a}, 7), v, -100);
          example(e.real({b, a, wide}), e.ids({b, a}, 40), wide, -100);
          example(e.real({v, a, b}), e.ids({b, a}, 7), v, 2);
          example(e.real({v}), e.ids({}, 7), v, -100);
          example(e.real({a, one}), e.ids({a}, 1), one, -100);
          const Dim p = Dim{"p", 5}.padded(4);
          example(e.real({a, p}), e.ids({a}, 5), p, 0);
        },
    .decompose =
        [](const OpCall& c, std::span<const Tensor> in) {
          const CrossEntropyAttrs& a = c.attrs<CrossEntropyAttrs>();
          const CrossEntropy r = decomposed_cross_entropy(in[0], in[1], in[2], a.over, a.ignore);
          return std::vector{r.sum, r.dlogits};
        },
    .scratch = [](const OpCall& c) { return std::size_t(c.elements(c.in(1))) * sizeof(double); },  // losses of rows
    .in_place = {InPlace{0, 1}},
    .costly = Costly::yes,
    .ids =
        [](const OpCall& c) {
          const CrossEntropyAttrs& a = c.attrs<CrossEntropyAttrs>();
          return IdOperand{1, c.graph.dim(a.over).valid(), a.ignore};
        },
    .out_of_range =
        [](const OpCall& c, i64 label, i64 classes) {
          const CrossEntropyAttrs& a = c.attrs<CrossEntropyAttrs>();
          return no_class(label, c.graph.dim(a.over).name, classes, a.ignore);
        },
};

}  // namespace stretto

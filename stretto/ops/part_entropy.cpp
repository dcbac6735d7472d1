#include "stretto/ops/part_entropy.h"

#include "stretto/ops/add.h"
#include "stretto/ops/broadcast.h"
#include "stretto/ops/cast.h"
#include "stretto/ops/compare.h"
#include "stretto/ops/constant.h"
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
namespace {

// 1 where a logit is the label's.
Tensor of_label(Tensor logits, Tensor labels, const PartEntropyAttrs& a) {
  Builder& b = *logits.builder;
  return equal(broadcast_to(labels, logits.type().dims), iota(b, b.graph.dim(a.over)) + double(a.first));
}

// From maxima and sums, for logits whose classes are split.
std::vector<Tensor> decomposed(const PartEntropyAttrs& a, Tensor logits, Tensor given) {
  Builder& b = *logits.builder;
  const Tensor classes = labels(given, a.whole, a.ignore), x = cast(logits, wide(logits.dtype()));
  const Tensor top = max_over(x, {a.over}), total = sum_over(exp(x - top), {a.over});
  // In bf16 it is a sum: pick would widen all logits once more to read one of a row.
  const Tensor label = logits.dtype() == bf16 ? sum_over(where(of_label(logits, classes, a), x, 0.0), {a.over})
                                              : b.emit(pick_op, {logits, classes - double(a.first)},
                                                       PickAttrs{{a.over}, classes.type().dims});
  return {log(total) + top, label};
}

}  // namespace

PartEntropy part_entropy(Tensor logits, Tensor labels, const Dim& over, i64 first, const Dim& whole, i64 ignore) {
  Builder& b = builder_of("part_entropy", {logits, labels});
  const DimId part = rules::dim_of("part_entropy", logits, over);
  const Tensor log_sum =
      b.emit(part_entropy_op, {logits, labels}, PartEntropyAttrs{part, b.intern(whole), first, ignore});
  return {log_sum, b.result(log_sum, 1)};
}

constinit const Op part_entropy_op{
    .name = "part_entropy",
    .infer =
        [](const OpCall& c) {
          rules::float_unary(c);
          const DimSet rows = without(c.in(0).dims, {c.attrs<PartEntropyAttrs>().over});
          for (DimId d : joined(rows, c.in(1).dims))
            if (c.in(1).dtype != i32 || !contains(rows, d) || !contains(c.in(1).dims, d))
              throw Error("part_entropy", "logits {} and labels {} do not fit", c.describe(0), c.describe(1))
                  .hint("labels are i32 and have all dims of the logits but that of the classes");
          const Type row{wide(c.in(0).dtype), rows};
          return std::vector<Type>{row, row};
        },
    .vjp =
        [](const Vjp& v) {
          const PartEntropyAttrs a = v.attrs<PartEntropyAttrs>();
          const DType stored = v.in[0].dtype();
          Tensor d;
          if (v.grad[0]) d = exp(cast(v.in[0], wide(stored)) - v.out[0]) * v.grad[0];
          if (v.grad[1]) {
            const Tensor own = where(of_label(v.in[0], v.in[1], a), v.grad[1], 0.0);
            d = d ? d + own : own;
          }
          return std::vector{cast(d, stored), Tensor{}};
        },
    .spread = [](const OpCall& c) { return Spread{.serial = {c.attrs<PartEntropyAttrs>().over}}; },
    .cost = rules::reading<20>,
    .examples =
        [](Examples& e) {
          const Dim a{"a", 3}, b{"b", 2}, v{"v", 7}, wide{"wide", 40}, one{"one", 1}, all{"all", 60};
          const auto example = [&](Tensor logits, Tensor labels, Dim over, i64 first, i64 ignore = -100) {
            const PartEntropy p = part_entropy(logits, labels, over, first, all, ignore);
            e.add({p.log_sum, p.label});
          };
          example(e.real({a, v}, -3, 3), e.ids({a}, 14), v, 0);
          example(e.real({b, a, wide}), e.ids({b, a}, 60), wide, 20);
          example(e.real({v, a, b}), e.ids({b, a}, 14), v, 7, 8);
          example(e.real({v}), e.ids({}, 7), v, 0);
          example(e.real({a, one}), e.ids({a}, 3), one, 1);
          const Dim p = Dim{"p", 5}.padded(4);
          example(e.real({a, p}), e.ids({a}, 10), p, 3, 0);
        },
    .decompose = [](const OpCall& c,
                    std::span<const Tensor> in) { return decomposed(c.attrs<PartEntropyAttrs>(), in[0], in[1]); },
    .costly = Costly::yes,
    .ids =
        [](const OpCall& c) {
          const PartEntropyAttrs& a = c.attrs<PartEntropyAttrs>();
          return IdOperand{1, c.graph.dim(a.whole).valid(), a.ignore};
        },
    .out_of_range =
        [](const OpCall& c, i64 label, i64 classes) {
          const PartEntropyAttrs& a = c.attrs<PartEntropyAttrs>();
          return no_class(label, c.graph.dim(a.whole).name, classes, a.ignore);
        },
};

}  // namespace stretto

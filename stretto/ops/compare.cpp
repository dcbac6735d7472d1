#include "stretto/ops/compare.h"

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/ops.h"

namespace stretto {
namespace {

std::vector<Type> truth(const OpCall& c) { return {{i32, rules::pointwise(c)[0].dims}}; }

void examples(Examples& e, Tensor (*compare)(Tensor, Tensor), Tensor (*with_number)(Tensor, double)) {
  const Dim a{"a", 3}, b{"b", 4};
  e.add(compare(e.real({a, b}), e.real({a, b})));
  e.add(compare(e.ids({a}, 3), e.ids({a, b}, 3)));
  e.add(with_number(e.ids({a, b}, 3), 1));
}

consteval Op comparison(std::string_view name, double (*value)(const double*), void (*examples)(Examples&)) {
  return {.name = name,
          .infer = truth,
          .spread = rules::nothing,
          .cost = rules::streaming<1>,
          .examples = examples,
          .pointwise = true,
          .value = value,
          .no_gradient = true};
}

}  // namespace

Tensor less(Tensor a, Tensor b) { return builder_of("less", {a, b}).emit(less_op, {a, b}); }
Tensor less(Tensor a, double b) { return less(a, rules::number("less", b, a)); }
constinit const Op less_op = comparison(
    "less", [](const double* x) { return double(x[0] < x[1]); }, [](Examples& e) { examples(e, &less, &less); });

Tensor less_equal(Tensor a, Tensor b) { return builder_of("less_equal", {a, b}).emit(less_equal_op, {a, b}); }
Tensor less_equal(Tensor a, double b) { return less_equal(a, rules::number("less_equal", b, a)); }
constinit const Op less_equal_op = comparison(
    "less_equal", [](const double* x) { return double(x[0] <= x[1]); },
    [](Examples& e) { examples(e, &less_equal, &less_equal); });

Tensor greater(Tensor a, Tensor b) { return builder_of("greater", {a, b}).emit(greater_op, {a, b}); }
Tensor greater(Tensor a, double b) { return greater(a, rules::number("greater", b, a)); }
constinit const Op greater_op = comparison(
    "greater", [](const double* x) { return double(x[0] > x[1]); },
    [](Examples& e) { examples(e, &greater, &greater); });

Tensor greater_equal(Tensor a, Tensor b) { return builder_of("greater_equal", {a, b}).emit(greater_equal_op, {a, b}); }
Tensor greater_equal(Tensor a, double b) { return greater_equal(a, rules::number("greater_equal", b, a)); }
constinit const Op greater_equal_op = comparison(
    "greater_equal", [](const double* x) { return double(x[0] >= x[1]); },
    [](Examples& e) { examples(e, &greater_equal, &greater_equal); });

Tensor equal(Tensor a, Tensor b) { return builder_of("equal", {a, b}).emit(equal_op, {a, b}); }
Tensor equal(Tensor a, double b) { return equal(a, rules::number("equal", b, a)); }
constinit const Op equal_op = comparison(
    "equal", [](const double* x) { return double(x[0] == x[1]); }, [](Examples& e) { examples(e, &equal, &equal); });

Tensor not_equal(Tensor a, Tensor b) { return builder_of("not_equal", {a, b}).emit(not_equal_op, {a, b}); }
Tensor not_equal(Tensor a, double b) { return not_equal(a, rules::number("not_equal", b, a)); }
constinit const Op not_equal_op = comparison(
    "not_equal", [](const double* x) { return double(x[0] != x[1]); },
    [](Examples& e) { examples(e, &not_equal, &not_equal); });

}  // namespace stretto

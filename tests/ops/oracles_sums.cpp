// Ops that add up over dims: products, softmax, norms and their gradients, from their definitions.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/oracle.h"
#include "stretto/ops/choose.h"
#include "stretto/ops/choose_grad.h"
#include "stretto/ops/contract.h"
#include "stretto/ops/layer_norm.h"
#include "stretto/ops/layer_norm_grad.h"
#include "stretto/ops/max.h"
#include "stretto/ops/rms_norm.h"
#include "stretto/ops/rms_norm_grad.h"
#include "stretto/ops/softmax.h"
#include "stretto/ops/softmax_grad.h"
#include "stretto/ops/sum.h"

namespace stretto::test {
namespace {

double contract(const Element& e) {
  return e.sum(e.attrs<ContractAttrs>().over, [&](const At& j) { return e.in(0, j) * e.in(1, j); });
}

// Per row the product with the matrix of its expert, summed over what the result lacks.
double choose(const Element& e) {
  const DimId expert = e.attrs<ChooseAttrs>().expert;
  const DimSet space = without(joined(joined(e.dims(0), e.dims(1)), e.dims(2)), {expert});
  return e.sum(without(space, e.result_dims()),
               [&](const At& j) { return e.in(0, j) * e.in(1, j.with(expert, i64(e.in(2, j)))); });
}

double choose_grad(const Element& e) {
  const DimId expert = e.attrs<ChooseGradAttrs>().expert;
  return e.sum(e.dims(2), [&](const At& j) { return i64(e.in(2, j)) == e.at[expert] ? e.in(0, j) * e.in(1, j) : 0; });
}

double sum(const Element& e) {
  return e.sum(e.attrs<SumAttrs>().over, [&](const At& j) { return e.in(0, j); });
}

double squared_norm(const Element& e) {
  return e.sum(e.dims(0), [&](const At& j) { return e.in(0, j) * e.in(0, j); });
}

double max(const Element& e) {
  double largest = -std::numeric_limits<double>::infinity();
  e.each(e.attrs<MaxAttrs>().over, e.at, [&](const At& j) { largest = std::max(largest, e.in(0, j)); });
  return largest;
}

double softmax(const Element& e) {
  return std::exp(e.in(0)) / e.sum({e.attrs<SoftmaxAttrs>().over}, [&](const At& j) { return std::exp(e.in(0, j)); });
}

// Of y = softmax(x): y * (g - sum of g * y).
double softmax_grad(const Element& e) {
  return e.in(0) *
         (e.in(1) - e.sum({e.attrs<SoftmaxGradAttrs>().over}, [&](const At& j) { return e.in(0, j) * e.in(1, j); }));
}

// (x - mean) / sqrt(variance + eps) * gain + bias; results y, mean, 1 / sqrt(variance + eps).
double layer_norm(const Element& e) {
  const NormAttrs& a = e.attrs<NormAttrs>();
  const double n = double(e.size(a.over));
  const double mean = e.sum({a.over}, [&](const At& j) { return e.in(0, j); }) / n;
  const double variance = e.sum({a.over}, [&](const At& j) { return std::pow(e.in(0, j) - mean, 2); }) / n;
  const double rstd = 1 / std::sqrt(variance + a.eps);
  if (e.result == 1) return mean;
  if (e.result == 2) return rstd;
  return (e.in(0) - mean) * rstd * e.in(1) + e.in(2);
}

// Operands x, gain, mean, rstd, g. With z = (x - mean) * rstd and h = g * gain:
// dx = rstd * (h - mean of h - z * mean of h z), dgain = sum of g z, dbias = sum of g.
double layer_norm_grad(const Element& e) {
  const DimId over = e.attrs<NormGradAttrs>().over;
  const auto z = [&](const At& j) { return (e.in(0, j) - e.in(2, j)) * e.in(3, j); };
  const auto h = [&](const At& j) { return e.in(4, j) * e.in(1, j); };
  const DimSet rows = without(e.dims(0), {over});
  if (e.result == 1) return e.sum(rows, [&](const At& j) { return e.in(4, j) * z(j); });
  if (e.result == 2) return e.sum(rows, [&](const At& j) { return e.in(4, j); });
  const double n = double(e.size(over)), mean = e.sum({over}, h) / n;
  const double along = e.sum({over}, [&](const At& j) { return h(j) * z(j); }) / n;
  return e.in(3) * (h(e.at) - mean - z(e.at) * along);
}

// x / sqrt(mean of x^2 + eps) * gain; results y, 1 / sqrt(mean of x^2 + eps).
double rms_norm(const Element& e) {
  const NormAttrs& a = e.attrs<NormAttrs>();
  const double squares = e.sum({a.over}, [&](const At& j) { return e.in(0, j) * e.in(0, j); });
  const double rstd = 1 / std::sqrt(squares / double(e.size(a.over)) + a.eps);
  return e.result == 1 ? rstd : e.in(0) * rstd * e.in(1);
}

// Operands x, gain, rstd, g: as layer_norm's, without means.
double rms_norm_grad(const Element& e) {
  const DimId over = e.attrs<NormGradAttrs>().over;
  const auto z = [&](const At& j) { return e.in(0, j) * e.in(2, j); };
  const auto h = [&](const At& j) { return e.in(3, j) * e.in(1, j); };
  if (e.result == 1) return e.sum(without(e.dims(0), {over}), [&](const At& j) { return e.in(3, j) * z(j); });
  const double along = e.sum({over}, [&](const At& j) { return h(j) * z(j); }) / double(e.size(over));
  return e.in(2) * (h(e.at) - z(e.at) * along);
}

constexpr NamedOracle sum_table[] = {
    {"choose", choose},
    {"choose_grad", choose_grad},
    {"contract", contract},
    {"layer_norm", layer_norm},
    {"layer_norm_grad", layer_norm_grad},
    {"max", max},
    {"rms_norm", rms_norm},
    {"rms_norm_grad", rms_norm_grad},
    {"softmax", softmax},
    {"softmax_grad", softmax_grad},
    {"squared_norm", squared_norm},
    {"sum", sum},
};

}  // namespace

std::span<const NamedOracle> oracles_of_sums() { return sum_table; }

}  // namespace stretto::test

#include "stretto/kernels/cuda/products.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/kernels/inner/product_plan.h"

namespace stretto {
namespace {

constexpr std::uint32_t wide_alignment = 16;

void check_product(CudaResult r, std::string_view function) {
  if (r == 0) return;
  throw Error("cuda", "{} failed: status {} of cublasLt", function, r)
      .hint("its numbers are those of cublasStatus_t; nvidia-smi shows the state of the device")
      .as(Error::Kind::run);
}
int type_number(DType t) {
  return t == f64 ? cuda_number::type_f64 : t == bf16 ? cuda_number::type_bf16 : cuda_number::type_f32;
}

// What lies row by row is, by columns, its transpose: so rows by columns of the product are the second operand by the
// first, unless the result lies turned.
CudaProduct::Matrix by_columns(const ProductMatrix& m, i64 rows, i64 columns, i64 step, DType dtype, bool turned) {
  CudaProduct::Matrix x{.leading = m.leading, .step = step, .turned = turned != m.transposed, .dtype = dtype};
  x.rows = m.transposed ? rows : columns, x.columns = m.transposed ? columns : rows;
  return x;
}

}  // namespace

std::optional<CudaProduct> cuda_product(const Call& call) {
  const std::optional<ProductPlan> plan = product_plan(call);
  if (!plan || !plan->inner.empty() || plan->outer.size() > 1 || std::min({plan->m, plan->n, plan->k}) == 0) return {};
  const ProductPlan& p = *plan;
  const Loop batch = p.outer.empty() ? Loop{} : p.outer[0];
  const bool turned = p.c.transposed;
  const auto a = by_columns(p.a, p.m, p.k, batch.step[0], call.in[0].dtype, turned);
  const auto b = by_columns(p.b, p.k, p.n, batch.step[1], call.in[1].dtype, turned);
  return CudaProduct{.left = turned ? a : b,
                     .right = turned ? b : a,
                     .result = by_columns(p.c, p.m, p.n, batch.step[2], call.out[0].dtype, turned),
                     .swapped = !turned,
                     .batches = batch.size,
                     .accumulate = call.accumulate};
}

PreparedProduct::PreparedProduct(const CudaApi& api, CublasHandle handle, const CudaProduct& p)
    : api_(api), handle_(handle), product_(p) {
  const CudaProducts& f = api_.products;
  const bool wide = p.result.dtype == f64;
  check_product(f.product(&description_, wide ? cuda_number::in_f64 : cuda_number::in_f32,
                          wide ? cuda_number::type_f64 : cuda_number::type_f32),
                "cublasLtMatmulDescCreate");
  const std::int32_t turns[] = {p.left.turned, p.right.turned};
  check_product(f.set_product(description_, cuda_number::product_turns_a, &turns[0], 4),
                "cublasLtMatmulDescSetAttribute");
  check_product(f.set_product(description_, cuda_number::product_turns_b, &turns[1], 4),
                "cublasLtMatmulDescSetAttribute");
  const auto matrix = [&](const CudaProduct::Matrix& m, CublasMatrix& to) {
    check_product(f.matrix(&to, type_number(m.dtype), std::uint64_t(m.rows), std::uint64_t(m.columns), m.leading),
                  "cublasLtMatrixLayoutCreate");
    const auto batches = static_cast<std::int32_t>(p.batches);
    check_product(f.set_matrix(to, cuda_number::matrix_batches, &batches, sizeof batches),
                  "cublasLtMatrixLayoutSetAttribute");
    check_product(f.set_matrix(to, cuda_number::matrix_batch_step, &m.step, sizeof m.step),
                  "cublasLtMatrixLayoutSetAttribute");
  };
  matrix(p.left, left_), matrix(p.right, right_), matrix(p.result, result_);
  choices_[at_16] = choice(wide_alignment);
  choices_[anywhere] = choice(static_cast<std::uint32_t>(size_of(p.left.dtype)));
  if (!choices_[anywhere])
    throw Error("cuda", "cublasLt has no algorithm for a product of {} x {} by {} columns", p.left.rows, p.left.columns,
                p.result.columns)
        .as(Error::Kind::run);
}

PreparedProduct::~PreparedProduct() {
  const CudaProducts& f = api_.products;
  for (const CublasMatrix m : {left_, right_, result_})
    if (m) f.end_matrix(m);
  if (description_) f.end_product(description_);
}

std::optional<CublasChoice> PreparedProduct::choice(std::uint32_t alignment) const {
  const CudaProducts& f = api_.products;
  CublasPreference preference = nullptr;
  check_product(f.preference(&preference), "cublasLtMatmulPreferenceCreate");
  const std::size_t most = product_workspace;
  f.set_preference(preference, cuda_number::most_workspace, &most, sizeof most);
  for (int matrix = 0; matrix < 4; ++matrix)
    f.set_preference(preference, cuda_number::alignment_of_a + matrix, &alignment, sizeof alignment);
  CublasChoice best{};
  int found = 0;
  const CudaResult r = f.choose(handle_, description_, left_, right_, result_, result_, preference, 1, &best, &found);
  f.end_preference(preference);
  return r == 0 && found > 0 && best.state == 0 ? std::optional(best) : std::nullopt;
}

void PreparedProduct::enqueue(CudaAddress a, CudaAddress b, CudaAddress c, bool adds, CudaAddress workspace,
                              CudaStream stream) const {
  const CudaAddress left = product_.swapped ? b : a, right = product_.swapped ? a : b;
  const auto at = [](CudaAddress x) { return reinterpret_cast<void*>(x); };
  const bool wide = (left | right | c) % wide_alignment == 0 && choices_[at_16].has_value();
  const CublasChoice& choice = *choices_[wide ? at_16 : anywhere];
  const double one = 1, more = adds ? 1 : 0;
  const float short_one = 1, short_more = adds ? 1 : 0;
  const bool doubles = product_.result.dtype == f64;
  check_product(
      api_.products.multiply(handle_, description_, doubles ? static_cast<const void*>(&one) : &short_one, at(left),
                             left_, at(right), right_, doubles ? static_cast<const void*>(&more) : &short_more, at(c),
                             result_, at(c), result_, &choice.algorithm, at(workspace), product_workspace, stream),
      "cublasLtMatmul");
}

}  // namespace stretto

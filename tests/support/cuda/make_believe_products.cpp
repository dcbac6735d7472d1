// cublasLt's double: products by plain loops, in a stream, of memory that must all be there. It has two algorithms, and
// the one for aligned operands refuses others.
#include <cmath>
#include <cstring>
#include <memory>

#include "stretto/base/bf16.h"
#include "support/cuda/make_believe.h"

namespace stretto::test {
namespace {

constexpr int success = 0, invalid_value = 7, not_supported = 15;

struct Product {
  int computed_in = 0, scaled_in = 0;
  std::int32_t turns[2] = {0, 0};
};
struct Matrix {
  int type = 0;
  std::int64_t rows = 0, columns = 0, leading = 0;
  std::int32_t batches = 1;
  std::int64_t step = 0;
  std::size_t size() const { return type == cuda_number::type_f64 ? 8 : type == cuda_number::type_bf16 ? 2 : 4; }
  std::size_t bytes() const { return std::size_t((batches - 1) * step + (columns - 1) * leading + rows) * size(); }
  double get(const std::byte* p, std::int64_t i) const {
    const auto as = [&]<class T>(T x) { return std::memcpy(&x, p + std::size_t(i) * size(), sizeof x), double(x); };
    return size() == 8 ? as(double{}) : size() == 2 ? as(BF16{}) : as(float{});
  }
  void put(std::byte* p, std::int64_t i, double v) const {
    const auto as = [&](auto x) { std::memcpy(p + std::size_t(i) * size(), &x, sizeof x); };
    size() == 8 ? as(v) : size() == 2 ? as(BF16(float(v))) : as(float(v));
  }
};
struct Preference {
  std::size_t workspace = 0;
  std::uint32_t alignment = 256;
};
Product& of(CublasProduct p) { return *reinterpret_cast<Product*>(p); }
Matrix& of(CublasMatrix m) { return *reinterpret_cast<Matrix*>(m); }
Preference& of(CublasPreference p) { return *reinterpret_cast<Preference*>(p); }

// One of the batch; sums in ascending order, in f32 as fused steps.
template <class T>
void multiply(const Product& p, const Matrix& a, const Matrix& b, const Matrix& c, const std::byte* left,
              const std::byte* right, std::byte* to, double alpha, double beta) {
  const std::int64_t k = p.turns[0] ? a.rows : a.columns;
  for (std::int64_t batch = 0; batch < c.batches; ++batch)
    for (std::int64_t j = 0; j < c.columns; ++j)
      for (std::int64_t i = 0; i < c.rows; ++i) {
        T sum = 0;
        for (std::int64_t s = 0; s < k; ++s) {
          const double x = a.get(left, batch * a.step + (p.turns[0] ? i * a.leading + s : s * a.leading + i));
          const double y = b.get(right, batch * b.step + (p.turns[1] ? s * b.leading + j : j * b.leading + s));
          sum = std::fma(T(x), T(y), sum);
        }
        const std::int64_t at = batch * c.step + j * c.leading + i;
        c.put(to, at, double(T(alpha) * sum + (beta != 0 ? T(beta) * T(c.get(to, at)) : T(0))));
      }
}

bool fits(const Product& p, const Matrix& a, const Matrix& b, const Matrix& c) {
  const std::int64_t m = p.turns[0] ? a.columns : a.rows, k = p.turns[0] ? a.rows : a.columns;
  const std::int64_t n = p.turns[1] ? b.rows : b.columns, other = p.turns[1] ? b.columns : b.rows;
  for (const Matrix* x : {&a, &b, &c})
    if (x->leading < x->rows || x->rows <= 0 || x->columns <= 0 || x->batches != c.batches) return false;
  const bool types =
      a.type == b.type && (c.type == a.type || (a.type == cuda_number::type_bf16 && c.type == cuda_number::type_f32));
  const bool wide = c.type == cuda_number::type_f64;
  return m == c.rows && n == c.columns && k == other && types &&
         p.computed_in == (wide ? cuda_number::in_f64 : cuda_number::in_f32) &&
         p.scaled_in == (wide ? cuda_number::type_f64 : cuda_number::type_f32);
}

int choose(CublasHandle, CublasProduct p, CublasMatrix a, CublasMatrix b, CublasMatrix c, CublasMatrix,
           CublasPreference preference, int count, CublasChoice* choices, int* found) {
  *found = 0;
  if (count < 1 || !fits(of(p), of(a), of(b), of(c))) return not_supported;
  choices[0] = {.algorithm = {{of(preference).alignment}}, .workspace = of(preference).workspace, .state = success};
  *found = 1;
  return success;
}

int multiply(CublasHandle, CublasProduct p, const void* alpha, const void* a, CublasMatrix of_a, const void* b,
             CublasMatrix of_b, const void* beta, const void* c, CublasMatrix of_c, void* d, CublasMatrix,
             const CublasAlgorithm* algorithm, void* workspace, std::size_t bytes, CudaStream stream) {
  const auto address = [](const void* x) { return reinterpret_cast<CudaAddress>(x); };
  const std::uint64_t alignment = algorithm->data[0];
  if (c != d || (address(a) | address(b) | address(d)) % alignment != 0) return invalid_value;
  const auto number = [&](const void* x) {
    return of(p).scaled_in == cuda_number::type_f64 ? *static_cast<const double*>(x)
                                                    : double(*static_cast<const float*>(x));
  };
  const Product product = of(p);
  const Matrix left = of(of_a), right = of(of_b), result = of(of_c);
  make_believe_work(stream, [=, by = number(alpha), old = number(beta)] {
    const std::byte* const x = make_believe_memory(address(a), left.bytes());
    const std::byte* const y = make_believe_memory(address(b), right.bytes());
    std::byte* const to = make_believe_memory(address(d), result.bytes());
    std::memset(make_believe_memory(address(workspace), bytes), 0x7f, bytes);
    product.computed_in == cuda_number::in_f64 ? multiply<double>(product, left, right, result, x, y, to, by, old)
                                               : multiply<float>(product, left, right, result, x, y, to, by, old);
  });
  return success;
}

}  // namespace

CudaProducts make_believe_products() {
  CudaProducts f;
  f.create = [](CublasHandle* h) { return *h = reinterpret_cast<CublasHandle>(new int), success; };
  f.destroy = [](CublasHandle h) { return delete reinterpret_cast<int*>(h), success; };
  f.product = [](CublasProduct* p, int computed_in, int scaled_in) {
    *p = reinterpret_cast<CublasProduct>(new Product{.computed_in = computed_in, .scaled_in = scaled_in});
    return success;
  };
  f.set_product = [](CublasProduct p, int attribute, const void* value, std::size_t bytes) {
    if (bytes != 4 || (attribute != cuda_number::product_turns_a && attribute != cuda_number::product_turns_b))
      return invalid_value;
    std::memcpy(&of(p).turns[attribute - cuda_number::product_turns_a], value, 4);
    return success;
  };
  f.end_product = [](CublasProduct p) { return delete &of(p), success; };
  f.matrix = [](CublasMatrix* m, int type, std::uint64_t rows, std::uint64_t columns, std::int64_t leading) {
    *m = reinterpret_cast<CublasMatrix>(
        new Matrix{.type = type, .rows = std::int64_t(rows), .columns = std::int64_t(columns), .leading = leading});
    return success;
  };
  f.set_matrix = [](CublasMatrix m, int attribute, const void* value, std::size_t bytes) {
    if (attribute == cuda_number::matrix_batches && bytes == 4) return std::memcpy(&of(m).batches, value, 4), success;
    if (attribute == cuda_number::matrix_batch_step && bytes == 8) return std::memcpy(&of(m).step, value, 8), success;
    return invalid_value;
  };
  f.end_matrix = [](CublasMatrix m) { return delete &of(m), success; };
  f.preference = [](CublasPreference* p) { return *p = reinterpret_cast<CublasPreference>(new Preference), success; };
  f.set_preference = [](CublasPreference p, int attribute, const void* value, std::size_t bytes) {
    if (attribute == cuda_number::most_workspace && bytes == 8) return std::memcpy(&of(p).workspace, value, 8), success;
    if (attribute == cuda_number::alignment_of_a && bytes == 4) return std::memcpy(&of(p).alignment, value, 4), success;
    return bytes == 4 ? success : invalid_value;
  };
  f.end_preference = [](CublasPreference p) { return delete &of(p), success; };
  f.choose = &choose;
  f.multiply = &multiply;
  return f;
}

}  // namespace stretto::test

// Products of matrices by cublasLt: one product, or so many of a kind at equal distances, on operands as they lie.
//
//   const CudaProduct p = *cuda_product(call);                     // none: it is more than one product
//   PreparedProduct prepared(api, handle, p);                      // asks for an algorithm, once
//   prepared.enqueue(a, b, c, adds, workspace, stream);
//
// Sums are in f32, of f64 in f64; no shorter numbers are put in their place (TF32).
#pragma once
#include <optional>

#include "stretto/kernels/cuda/api.h"
#include "stretto/kernels/kernel.h"

namespace stretto {

constexpr std::size_t product_workspace = std::size_t(32) << 20;  // bytes, of each lane

// As cublasLt has it, by columns: result = left * right, of which each lies as it is or turned.
struct CudaProduct {
  struct Matrix {
    i64 rows = 0, columns = 0, leading = 1, step = 0;  // as it lies; step: from one of a batch to the next
    bool turned = false;
    DType dtype = f32;
  };
  Matrix left, right, result;
  bool swapped = false;  // left is the second operand
  i64 batches = 1;
  bool accumulate = false;
};
std::optional<CudaProduct> cuda_product(const Call&);

class PreparedProduct {
 public:
  PreparedProduct(const CudaApi&, CublasHandle, const CudaProduct&);
  ~PreparedProduct();
  PreparedProduct(const PreparedProduct&) = delete;
  void enqueue(CudaAddress a, CudaAddress b, CudaAddress c, bool adds, CudaAddress workspace, CudaStream) const;

 private:
  // Some algorithms want operands at multiples of 16 bytes, and where they are is known when they are multiplied.
  enum Alignment { at_16, anywhere };
  std::optional<CublasChoice> choice(std::uint32_t alignment) const;

  const CudaApi& api_;
  CublasHandle handle_;
  CudaProduct product_;
  CublasProduct description_ = nullptr;
  CublasMatrix left_ = nullptr, right_ = nullptr, result_ = nullptr;
  std::optional<CublasChoice> choices_[2];
};

}  // namespace stretto

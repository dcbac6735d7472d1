// softmax and its gradient, a block per row.
#include "stretto/ops/softmax.h"

#include "stretto/kernels/cuda/kernel.h"
#include "stretto/ops/softmax_grad.h"

namespace stretto {
namespace {

CudaSource softmax_rows(const Call& call, DimId over, std::string_view body) {
  CudaText t(call);
  t.space("row", without(call.in[0].dims, {over})).space("k", {over});
  return t.kernel(body, {.grid = blocks_for(t.count("row"), 1)});
}

std::vector<CudaSource> write_softmax(const Call& call) {
  return {softmax_rows(call, call.attrs<SoftmaxAttrs>().over, R"cuda(
  __shared__ W part[32];
  for (unsigned row = blockIdx.x; row < row_n; row += gridDim.x) {
    W top = lowest<W>(), sum = 0;
    for (unsigned k = threadIdx.x; k < k_n; k += blockDim.x) top = larger(top, W(get(i0 + at_i0(row, k))));
    top = block_max(top, part);
    for (unsigned k = threadIdx.x; k < k_n; k += blockDim.x) sum += exp(get(i0 + at_i0(row, k)) - top);
    const W factor = W(1) / block_sum(sum, part);
    for (unsigned k = threadIdx.x; k < k_n; k += blockDim.x) store(o0 + at_o0(row, k), exp(get(i0 + at_i0(row, k)) - top) * factor);
  }
)cuda")};
}

std::vector<CudaSource> write_softmax_grad(const Call& call) {
  return {softmax_rows(call, call.attrs<SoftmaxGradAttrs>().over, R"cuda(
  __shared__ W part[32];
  for (unsigned row = blockIdx.x; row < row_n; row += gridDim.x) {
    W dot = 0;
    for (unsigned k = threadIdx.x; k < k_n; k += blockDim.x) dot += get(i0 + at_i0(row, k)) * get(i1 + at_i1(row, k));
    dot = block_sum(dot, part);
    for (unsigned k = threadIdx.x; k < k_n; k += blockDim.x)
      store(o0 + at_o0(row, k), get(i0 + at_i0(row, k)) * (get(i1 + at_i1(row, k)) - dot));
  }
)cuda")};
}

constexpr CudaKernel softmax_list[] = {{.name = "rows", .write = &write_softmax}};
constexpr CudaKernel softmax_grad_list[] = {{.name = "rows", .write = &write_softmax_grad}};

}  // namespace

std::span<const CudaKernel> softmax_cuda_kernels() { return softmax_list; }
std::span<const CudaKernel> softmax_grad_cuda_kernels() { return softmax_grad_list; }

}  // namespace stretto

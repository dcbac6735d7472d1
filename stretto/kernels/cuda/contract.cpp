// Products of matrices are cublasLt's. Products of any dims: squares of 16 x 16 results, operands by way of shared
// memory, each sum in ascending order.
#include "stretto/ops/contract.h"

#include <algorithm>

#include "stretto/kernels/cuda/kernel.h"

namespace stretto {
namespace {

std::vector<CudaSource> write_squares(const Call& call) {
  const ContractAttrs& a = call.attrs<ContractAttrs>();
  DimSet rows, columns, kept;
  for (DimId d : a.out) (contains(a.along, d) ? kept : contains(call.in[0].dims, d) ? rows : columns).push_back(d);
  CudaText t(call);
  t.space("l", kept).space("m", rows).space("n", columns).space("k", a.over);
  const i64 squares = t.count("l") * ((t.count("m") + 15) / 16) * ((t.count("n") + 15) / 16);
  return {t.kernel(R"cuda(
  __shared__ W left[16][17], right[16][17];
  const unsigned x = threadIdx.x % 16, y = threadIdx.x / 16;
  constexpr unsigned across = (n_n + 15) / 16, down = (m_n + 15) / 16;
  for (unsigned square = blockIdx.x; square < l_n * down * across; square += gridDim.x) {
    const unsigned n0 = square % across * 16, m0 = square / across % down * 16, l = square / across / down;
    W sum = 0;
    for (unsigned k0 = 0; k0 < k_n; k0 += 16) {
      left[y][x] = m0 + y < m_n && k0 + x < k_n ? W(get(i0 + at_i0(l, m0 + y, 0, k0 + x))) : W(0);
      right[y][x] = k0 + y < k_n && n0 + x < n_n ? W(get(i1 + at_i1(l, 0, n0 + x, k0 + y))) : W(0);
      __syncthreads();
      for (unsigned k = 0; k < 16; ++k) sum += left[y][k] * right[k][x];
      __syncthreads();
    }
    if (m0 + y < m_n && n0 + x < n_n) store(o0 + at_o0(l, m0 + y, n0 + x, 0), sum, adds);
  }
)cuda",
                   {.grid = blocks_for(squares, 1), .block = 256})};
}

// Before a product: nothing but the result's padding, where it has some.
std::vector<CudaSource> write_padding(const Call& call) {
  const View& out = call.out[0];
  const auto padded = [&](DimId d) { return out.valid(d) < out.size(d); };
  if (std::none_of(out.dims.begin(), out.dims.end(), padded)) return {};
  return {CudaText(call).kernel("", {.grid = blocks_for(out.elements())})};
}

constexpr CudaKernel contract_list[] = {{.name = "cublasLt",
                                         .accepts = [](const Call& c) { return cuda_product(c).has_value(); },
                                         .write = &write_padding,
                                         .product = &cuda_product},
                                        {.name = "squares", .write = &write_squares}};

}  // namespace

std::span<const CudaKernel> contract_cuda_kernels() { return contract_list; }

}  // namespace stretto

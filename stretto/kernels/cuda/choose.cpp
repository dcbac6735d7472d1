// Rows with the matrices of their experts. Forward: a thread per result, its rows in their order. The matrices'
// gradients: squares of 16 x 16, 16 rows at a time, of which those of other experts count as zeros.
#include "stretto/ops/choose.h"

#include "stretto/kernels/cuda/kernel.h"
#include "stretto/ops/choose_grad.h"

namespace stretto {
namespace {

std::vector<CudaSource> write_choose(const Call& call) {
  const View &x = call.in[0], &w = call.in[1], &which = call.in[2], &out = call.out[0];
  const DimId expert = call.attrs<ChooseAttrs>().expert;
  const DimSet matrix = without(w.dims, {expert});
  DimSet k;
  for (DimId d : matrix)
    if (contains(x.dims, d)) k.push_back(d);
  CudaText t(call);
  t.space("x", out.dims).space("row", without(which.dims, out.dims)).space("k", k);
  t.integer("step", w.stride(expert)).integer("first", offset_of(w, expert)).integer("experts", w.valid(expert));
  return {t.kernel(R"cuda(
  for (unsigned x = thread; x < x_n; x += threads) {
    W sum = 0;
    for (unsigned row = 0; row < row_n; ++row) {
      const i64 e = i64(i2[at_i2(x, row, 0)]) - first;
      if (e < 0 || e >= experts) continue;
      W product = 0;
      for (unsigned k = 0; k < k_n; ++k) product += get(i0 + at_i0(x, row, k)) * get(i1 + e * step + at_i1(x, row, k));
      sum += product;
    }
    store(o0 + at_o0(x, 0, 0), sum);
  }
)cuda",
                   {.grid = blocks_for(t.count("x"))})};
}

std::vector<CudaSource> write_choose_grad(const Call& call) {
  const View &a = call.in[0], &w = call.out[0], &which = call.in[2];
  const DimId expert = call.attrs<ChooseGradAttrs>().expert;
  DimSet k, n;
  for (DimId d : without(w.dims, {expert})) (contains(a.dims, d) ? k : n).push_back(d);
  CudaText t(call);
  t.space("row", which.dims).space("e", {expert}).space("k", k).space("n", n).integer("first", offset_of(w, expert));
  const i64 squares = t.count("e") * ((t.count("k") + 15) / 16) * ((t.count("n") + 15) / 16);
  return {t.kernel(R"cuda(
  __shared__ W left[16][17], right[16][17];
  const unsigned x = threadIdx.x % 16, y = threadIdx.x / 16;
  constexpr unsigned across = (n_n + 15) / 16, down = (k_n + 15) / 16;
  for (unsigned square = blockIdx.x; square < e_n * down * across; square += gridDim.x) {
    const unsigned n = square % across * 16 + x, k = square / across % down * 16, e = square / across / down;
    W sum = 0;
    for (unsigned row = 0; row < row_n; row += 16) {
      const bool own = row + y < row_n && i64(i2[at_i2(row + y, 0, 0, 0)]) - first == e;
      left[y][x] = own && k + x < k_n ? W(get(i0 + at_i0(row + y, 0, k + x, 0))) : W(0);
      right[y][x] = own && n < n_n ? W(get(i1 + at_i1(row + y, 0, 0, n))) : W(0);
      __syncthreads();
      for (unsigned r = 0; r < 16; ++r) sum += left[r][y] * right[r][x];
      __syncthreads();
    }
    if (k + y < k_n && n < n_n) store(o0 + at_o0(0, e, k + y, n), sum, adds);
  }
)cuda",
                   {.grid = blocks_for(squares, 1), .block = 256})};
}

constexpr CudaKernel choose_list[] = {{.name = "rows", .write = &write_choose}};
constexpr CudaKernel choose_grad_list[] = {{.name = "squares", .write = &write_choose_grad}};

}  // namespace

std::span<const CudaKernel> choose_cuda_kernels() { return choose_list; }
std::span<const CudaKernel> choose_grad_cuda_kernels() { return choose_grad_list; }

}  // namespace stretto

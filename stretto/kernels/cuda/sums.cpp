// Sums and maxima over dims, and squared norms. The order in which elements are joined depends on shapes only.
#include "stretto/kernels/cuda/kernel.h"
#include "stretto/ops/max.h"
#include "stretto/ops/sum.h"

namespace stretto {
namespace {

constexpr i64 squared_norm_blocks = 256;

struct Joined {
  DimSet over;
  std::string_view functions;  // join(a, b), first(): changes nothing; R is what is joined
};

// Elements that follow each other are joined by a block; else eight threads share a column, 32 columns a block.
std::vector<CudaSource> reduce(const Call& call, const Joined& how) {
  const View& x = call.in[0];
  CudaText t(call);
  t.space("kept", without(x.dims, how.over), CudaText::padded).space("k", how.over).text(how.functions);
  const bool rows =
      std::any_of(how.over.begin(), how.over.end(), [&](DimId d) { return x.stride(d) == 1 && x.valid(d) > 1; });
  if (rows)
    return {t.kernel(R"cuda(
  __shared__ W part[128];
  for (unsigned kept = blockIdx.x; kept < kept_n; kept += gridDim.x) {
    W v = first();
    for (unsigned k = threadIdx.x; k < k_n; k += 128) v = join(v, W(get(i0 + at_i0(kept, k))));
    part[threadIdx.x] = v;
    __syncthreads();
    for (unsigned n = 64; n > 0; n /= 2) {
      if (threadIdx.x < n) part[threadIdx.x] = join(part[threadIdx.x], part[threadIdx.x + n]);
      __syncthreads();
    }
    if (threadIdx.x == 0) o0[at_o0(kept, 0)] = Out0(adds ? join(W(get(o0 + at_o0(kept, 0))), part[0]) : part[0]);
    __syncthreads();
  }
)cuda",
                     {.grid = blocks_for(t.count("kept"), 1)})};
  return {t.kernel(R"cuda(
  __shared__ W part[256];
  const unsigned c = threadIdx.x % 32, p = threadIdx.x / 32;
  for (unsigned begin = blockIdx.x * 32; begin < kept_n; begin += gridDim.x * 32) {
    const unsigned kept = begin + c;
    W v = first();
    if (kept < kept_n)
      for (unsigned k = p; k < k_n; k += 8) v = join(v, W(get(i0 + at_i0(kept, k))));
    part[threadIdx.x] = v;
    __syncthreads();
    if (p == 0 && kept < kept_n) {
      for (unsigned q = 1; q < 8; ++q) v = join(v, part[c + 32 * q]);
      o0[at_o0(kept, 0)] = Out0(adds ? join(W(get(o0 + at_o0(kept, 0))), v) : v);
    }
    __syncthreads();
  }
)cuda",
                   {.grid = blocks_for(t.count("kept"), 32), .block = 256})};
}

std::vector<CudaSource> write_sum(const Call& call) {
  return reduce(call, {call.attrs<SumAttrs>().over, R"cuda(
__device__ __forceinline__ W first() { return 0; }
__device__ __forceinline__ W join(W a, W b) { return a + b; }
)cuda"});
}
std::vector<CudaSource> write_max(const Call& call) {
  return reduce(call, {call.attrs<MaxAttrs>().over, R"cuda(
__device__ __forceinline__ W first() { return lowest<W>(); }
__device__ __forceinline__ W join(W a, W b) { return larger(a, b); }
)cuda"});
}

// In f64: blocks first, then one block over their sums.
std::vector<CudaSource> write_squared_norm(const Call& call) {
  CudaText t(call);
  t.space("x", call.in[0].dims);
  const i64 blocks = std::min<i64>(blocks_for(t.count("x")), squared_norm_blocks);
  t.integer("blocks", blocks);
  const auto work = std::size_t(blocks) * sizeof(double);
  return {t.kernel(R"cuda(
  __shared__ double part[32];
  double s = 0;
  for (unsigned x = thread; x < x_n; x += threads) { const double v = get(i0 + at_i0(x)); s += v * v; }
  s = block_sum(s, part);
  if (threadIdx.x == 0) ((double*)work)[blockIdx.x] = s;
)cuda",
                   {.grid = unsigned(blocks), .work = work}),
          t.kernel(R"cuda(
  __shared__ double part[32];
  double s = 0;
  for (unsigned b = threadIdx.x; b < blocks; b += blockDim.x) s += ((const double*)work)[b];
  s = block_sum(s, part);
  if (threadIdx.x == 0) *o0 = s;
)cuda",
                   {.work = work})};
}

constexpr CudaKernel sums[] = {{.name = "joined", .write = &write_sum}};
constexpr CudaKernel maxima[] = {{.name = "joined", .write = &write_max}};
constexpr CudaKernel norms[] = {{.name = "blocks", .write = &write_squared_norm}};

}  // namespace

std::span<const CudaKernel> sum_cuda_kernels() { return sums; }
std::span<const CudaKernel> max_cuda_kernels() { return maxima; }
std::span<const CudaKernel> squared_norm_cuda_kernels() { return norms; }

}  // namespace stretto

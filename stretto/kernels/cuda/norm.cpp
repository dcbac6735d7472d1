// layer_norm and rms_norm, a block per row. Their gradients: first the columns' sums (dx may lie where g is), then dx.
#include "stretto/ops/norm.h"
#include "stretto/kernels/cuda/kernel.h"

namespace stretto {
namespace {

constexpr unsigned norm_row_block = 128, norm_column_block = 256;

template <bool centered>
std::vector<CudaSource> write_norm(const Call& call) {
  const NormAttrs& a = call.attrs<NormAttrs>();
  CudaText t(call);
  t.space("row", without(call.in[0].dims, {a.over})).space("k", {a.over}).number("eps", a.eps);
  const std::string_view body = centered ? R"cuda(
  __shared__ W part[32];
  for (unsigned row = blockIdx.x; row < row_n; row += gridDim.x) {
    W s = 0, q = 0;
    for (unsigned k = threadIdx.x; k < k_n; k += blockDim.x) s += get(i0 + at_i0(row, k));
    const W mean = block_sum(s, part) / W(k_n);
    for (unsigned k = threadIdx.x; k < k_n; k += blockDim.x) { const W d = get(i0 + at_i0(row, k)) - mean; q += d * d; }
    const W rstd = W(1) / sqrt(block_sum(q, part) / W(k_n) + eps);
    if (threadIdx.x == 0 && o1) o1[at_o1(row, 0)] = mean;
    if (threadIdx.x == 0 && o2) o2[at_o2(row, 0)] = rstd;
    if (o0)
      for (unsigned k = threadIdx.x; k < k_n; k += blockDim.x)
        store(o0 + at_o0(row, k), (get(i0 + at_i0(row, k)) - mean) * rstd * get(i1 + at_i1(row, k)) + get(i2 + at_i2(row, k)));
  }
)cuda"
                                         : R"cuda(
  __shared__ W part[32];
  for (unsigned row = blockIdx.x; row < row_n; row += gridDim.x) {
    W q = 0;
    for (unsigned k = threadIdx.x; k < k_n; k += blockDim.x) { const W d = get(i0 + at_i0(row, k)); q += d * d; }
    const W rstd = W(1) / sqrt(block_sum(q, part) / W(k_n) + eps);
    if (threadIdx.x == 0 && o1) o1[at_o1(row, 0)] = rstd;
    if (o0)
      for (unsigned k = threadIdx.x; k < k_n; k += blockDim.x)
        store(o0 + at_o0(row, k), get(i0 + at_i0(row, k)) * rstd * get(i1 + at_i1(row, k)));
  }
)cuda";
  return {t.kernel(body, {.grid = blocks_for(t.count("row"), 1), .block = norm_row_block})};
}

// Names for both: x, gain, mean of a row, rstd, g; dx, dgain, dbias.
template <bool centered>
constexpr std::string_view norm_names = centered ? R"cuda(
#define G(row, k) get(i4 + at_i4(row, k))
#define MEAN(row) i2[at_i2(row, 0)]
#define RSTD(row) i3[at_i3(row, 0)]
#define CENTERED 1
)cuda"
                                                 : R"cuda(
#define G(row, k) get(i3 + at_i3(row, k))
#define MEAN(row) W(0)
#define RSTD(row) i2[at_i2(row, 0)]
#define CENTERED 0
)cuda";

// Eight threads share a column: rows 0, 8, ... are the first one's.
constexpr std::string_view norm_columns = R"cuda(
  __shared__ W gains[256], biases[256];
  const unsigned c = threadIdx.x % 32, p = threadIdx.x / 32;
  for (unsigned first = blockIdx.x * 32; first < k_n; first += gridDim.x * 32) {
    const unsigned k = first + c;
    W gain = 0, bias = 0;
    if (k < k_n)
      for (unsigned row = p; row < row_n; row += 8) {
        const W g = G(row, k);
        gain += g * ((X(row, k) - MEAN(row)) * RSTD(row)), bias += g;
      }
    gains[threadIdx.x] = gain, biases[threadIdx.x] = bias;
    __syncthreads();
    if (p == 0 && k < k_n) {
      for (unsigned q = 1; q < 8; ++q) gain += gains[c + 32 * q], bias += biases[c + 32 * q];
      if (o1) o1[at_o1(0, k)] = gain;
#if CENTERED
      if (o2) o2[at_o2(0, k)] = bias;
#endif
    }
    __syncthreads();
  }
)cuda";
constexpr std::string_view norm_rows = R"cuda(
  __shared__ W part[32];
  for (unsigned row = blockIdx.x; o0 && row < row_n; row += gridDim.x) {
    const W mean = MEAN(row), rstd = RSTD(row);
    W a = 0, b = 0;
    for (unsigned k = threadIdx.x; k < k_n; k += blockDim.x) {
      const W g = G(row, k) * GAIN(row, k);
      a += g, b += g * ((X(row, k) - mean) * rstd);
    }
    a = CENTERED ? block_sum(a, part) / W(k_n) : W(0), b = block_sum(b, part) / W(k_n);
    for (unsigned k = threadIdx.x; k < k_n; k += blockDim.x)
      store(o0 + at_o0(row, k), rstd * (G(row, k) * GAIN(row, k) - a - (X(row, k) - mean) * rstd * b), adds);
  }
)cuda";

template <bool centered>
std::vector<CudaSource> write_norm_grad(const Call& call) {
  const DimId over = call.attrs<NormGradAttrs>().over;
  CudaText t(call);
  t.space("row", without(call.in[0].dims, {over})).space("k", {over}).text(norm_names<centered>);
  t.text("#define X(row, k) get(i0 + at_i0(row, k))\n#define GAIN(row, k) get(i1 + at_i1(row, k))\n");
  return {t.kernel(norm_columns, {.grid = blocks_for(t.count("k"), 32), .block = norm_column_block}),
          t.kernel(norm_rows, {.grid = blocks_for(t.count("row"), 1), .block = norm_row_block})};
}

constexpr CudaKernel layer[] = {{.name = "rows", .write = &write_norm<true>}};
constexpr CudaKernel rms[] = {{.name = "rows", .write = &write_norm<false>}};
constexpr CudaKernel layer_grad[] = {{.name = "rows", .write = &write_norm_grad<true>}};
constexpr CudaKernel rms_grad[] = {{.name = "rows", .write = &write_norm_grad<false>}};

}  // namespace

std::span<const CudaKernel> layer_norm_cuda_kernels() { return layer; }
std::span<const CudaKernel> rms_norm_cuda_kernels() { return rms; }
std::span<const CudaKernel> layer_norm_grad_cuda_kernels() { return layer_grad; }
std::span<const CudaKernel> rms_norm_grad_cuda_kernels() { return rms_grad; }

}  // namespace stretto

// Where the run of equal numbers begins that an element is in: each thread walks back to it.
#include "stretto/kernels/cuda/kernel.h"
#include "stretto/ops/attention.h"

namespace stretto {
namespace {

std::vector<CudaSource> write_starts(const Call& call) {
  const DimId along = call.attrs<StartsAttrs>().along;
  CudaText t(call);
  t.space("row", without(call.in[0].dims, {along})).space("k", {along});
  return {t.kernel(R"cuda(
  for (unsigned x = thread; x < row_n * k_n; x += threads) {
    const unsigned row = x / k_n, k = x % k_n;
    const int own = i0[at_i0(row, k)];
    unsigned first = k;
    while (first > 0 && i0[at_i0(row, first - 1)] == own) --first;
    o0[at_o0(row, k)] = first;
  }
)cuda",
                   {.grid = blocks_for(t.count("row") * t.count("k"))})};
}
constexpr CudaKernel starts_list[] = {{.name = "back", .write = &write_starts}};

}  // namespace

std::span<const CudaKernel> starts_cuda_kernels() { return starts_list; }

}  // namespace stretto

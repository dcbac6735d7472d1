// Who goes to which expert: the best of a row, and slots in the order of tokens.
#include "stretto/kernels/cuda/kernel.h"
#include "stretto/ops/slots.h"
#include "stretto/ops/top_k.h"

namespace stretto {
namespace {

// An element's rank is the number of those that come before it.
std::vector<CudaSource> write_top_k(const Call& call) {
  const TopKAttrs& a = call.attrs<TopKAttrs>();
  CudaText t(call);
  t.space("row", without(call.in[0].dims, {a.over})).space("k", {a.over}).space("choice", {a.choice});
  return {t.kernel(R"cuda(
  for (unsigned x = thread; x < row_n * k_n; x += threads) {
    const unsigned row = x / k_n, k = x % k_n;
    const W own = get(i0 + at_i0(row, k, 0));
    unsigned rank = 0;
    for (unsigned other = 0; other < k_n; ++other) {
      const W v = get(i0 + at_i0(row, other, 0));
      rank += other < k ? !(own > v) : v > own;
    }
    if (rank < choice_n) o0[at_o0(row, 0, rank)] = k;
  }
)cuda",
                   {.grid = blocks_for(t.count("row") * t.count("k"))})};
}

std::vector<CudaSource> write_slots(const Call& call) {
  const SlotsAttrs& a = call.attrs<SlotsAttrs>();
  CudaText t(call);
  t.space("sequence", without(call.in[0].dims, {a.token, a.choice})).space("k", {a.token, a.choice});
  t.integer("experts", a.experts).integer("slots", a.slots);
  return {t.kernel(R"cuda(
  for (unsigned x = thread; x < sequence_n * k_n; x += threads) {
    const unsigned sequence = x / k_n, k = x % k_n;
    const int own = i0[at_i0(sequence, k)];
    i64 used = 0;
    if (own >= 0 && own < experts)
      for (unsigned before = 0; before < k; ++before) used += i0[at_i0(sequence, before)] == own;
    o0[at_o0(sequence, k)] = own >= 0 && own < experts && used < slots ? int(own * slots + used) : -1;
  }
)cuda",
                   {.grid = blocks_for(t.count("sequence") * t.count("k"))})};
}

constexpr CudaKernel top_k_list[] = {{.name = "ranks", .write = &write_top_k}};
constexpr CudaKernel slots_list[] = {{.name = "ranks", .write = &write_slots}};

}  // namespace

std::span<const CudaKernel> top_k_cuda_kernels() { return top_k_list; }
std::span<const CudaKernel> slots_cuda_kernels() { return slots_list; }

}  // namespace stretto

// Rows by id, and their gradient: the first place of an id adds the rows of all its places, in their order.
#include "stretto/ops/embedding.h"

#include "stretto/kernels/cuda/kernel.h"
#include "stretto/ops/embedding_grad.h"

namespace stretto {
namespace {

std::vector<CudaSource> write_embedding(const Call& call) {
  const View &table = call.in[0], &ids = call.in[1];
  const EmbeddingAttrs& a = call.attrs<EmbeddingAttrs>();
  CudaText t(call);
  t.space("place", ids.dims).space("k", without(table.dims, {a.vocab}));
  t.integer("first", a.first + offset_of(table, a.vocab)).integer("rows", table.valid(a.vocab));
  t.integer("row_stride", table.stride(a.vocab));
  t.integer("limit", a.whole == a.vocab ? table.limits[std::size_t(position(table.dims, a.vocab))]
                                        : call.graph.dim(a.whole).valid());
  return {t.kernel(R"cuda(
  for (unsigned place = blockIdx.x; place < place_n; place += gridDim.x) {
    const i64 id = i1[at_i1(place, 0)], local = id - first;
    const bool known = id >= 0 && id < limit;
    if (!known && threadIdx.x == 0) within(id, limit, now, fault);
    for (unsigned k = threadIdx.x; k < k_n; k += blockDim.x) {
      W v = known ? W(0) : no_number<W>();
      if (known && local >= 0 && local < rows) v = get(i0 + local * row_stride + at_i0(place, k));
      store(o0 + at_o0(place, k), v);
    }
  }
)cuda",
                   {.grid = blocks_for(t.count("place"), 1)})};
}

std::vector<CudaSource> write_embedding_grad(const Call& call) {
  const View &ids = call.in[1], &out = call.out[0];
  const EmbeddingGradAttrs& a = call.attrs<EmbeddingGradAttrs>();
  CudaText zeros(call), t(call);
  zeros.space("x", out.dims, CudaText::padded);
  t.space("place", ids.dims).space("k", without(out.dims, {a.vocab}));
  t.integer("first", a.first + offset_of(out, a.vocab)).integer("rows", out.valid(a.vocab));
  t.integer("row_stride", out.stride(a.vocab));
  return {zeros.kernel("if (!adds) for (unsigned x = thread; x < x_n; x += threads) o0[at_o0(x)] = Out0(0);\n",
                       {.grid = blocks_for(zeros.count("x"))}),
          t.kernel(R"cuda(
  __shared__ unsigned earlier[4];
  for (unsigned place = blockIdx.x; place < place_n; place += gridDim.x) {
    const int id = i1[at_i1(place, 0)];
    const i64 local = (i64)id - first;
    bool seen = false;
    for (unsigned p = threadIdx.x; p < place; p += blockDim.x) seen = seen || i1[at_i1(p, 0)] == id;
    const unsigned votes = __ballot_sync(whole_warp, seen);
    if (threadIdx.x % 32 == 0) earlier[threadIdx.x / 32] = votes;
    __syncthreads();
    const bool skip = earlier[0] | earlier[1] | earlier[2] | earlier[3];
    __syncthreads();
    if (skip || local < 0 || local >= rows) continue;
    for (unsigned k = threadIdx.x; k < k_n; k += blockDim.x) {
      Out0* const to = o0 + local * row_stride + at_o0(0, k);
      Out0 sum = *to;
      for (unsigned p = place; p < place_n; ++p)
        if (i1[at_i1(p, 0)] == id) sum += get(i0 + at_i0(p, k));
      *to = sum;
    }
  }
)cuda",
                   {.grid = blocks_for(t.count("place"), 1), .block = 128})};
}

constexpr CudaKernel embedding_list[] = {{.name = "rows", .write = &write_embedding}};
constexpr CudaKernel embedding_grad_list[] = {{.name = "places", .write = &write_embedding_grad}};

}  // namespace

std::span<const CudaKernel> embedding_cuda_kernels() { return embedding_list; }
std::span<const CudaKernel> embedding_grad_cuda_kernels() { return embedding_grad_list; }

}  // namespace stretto

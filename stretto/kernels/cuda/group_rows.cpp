// Where the rows that tokens chose go: first how many go from whom to whom; then, a block per member that rows go to,
// the place of each in the order of all members' tokens; then how many are lost. Numbers stay on the device.
#include "stretto/ops/group_rows.h"

#include "stretto/kernels/cuda/kernel.h"

namespace stretto {
namespace {

// WHICH(from, token): the expert. In the workspace: rows from whom to whom, then a place per token.
constexpr std::string_view group_rows_text = R"cuda(
#define WHICH(from, token) i0[i64(from) * member_step + at_i0(token)]
__device__ __forceinline__ bool exists(int expert) { return expert >= 0 && expert / experts < members; }
)cuda";
constexpr std::string_view count_rows_text = R"cuda(
  __shared__ int part[32];
  for (unsigned pair = blockIdx.x; pair < members * members; pair += gridDim.x) {
    const int from = pair / members, to = pair % members;
    int before = 0, own = 0;
    for (unsigned x = threadIdx.x; x < unsigned(from + 1) * token_n; x += blockDim.x) {
      const int e = WHICH(x / token_n, x % token_n), goes = exists(e) && e / experts == to;
      if (x / token_n == from) own += goes;
      else before += goes;
    }
    before = block_sum(before, part), own = block_sum(own, part);
    const int left = before < room ? int(room) - before : 0, fit = own < left ? own : left;
    if (threadIdx.x == 0) {
      ((int*)work)[pair] = fit;
      if (o2) o2[from * there_from + to * there_to] = fit;
      if (o3) o3[to * back_to + from * back_from] = fit;
    }
  }
)cuda";
constexpr std::string_view place_rows_text = R"cuda(
  __shared__ int votes[8];
  for (int to = blockIdx.x; to < members; to += gridDim.x) {
    int begin = 0, came = 0;  // what leaves this member for others before `to`; rows for `to` so far
    for (int other = 0; other < to; ++other) begin += ((const int*)work)[member * members + other];
    for (int from = 0; from < member; ++from) begin -= ((const int*)work)[from * members + to];
    for (unsigned x0 = 0; x0 < unsigned(members) * token_n; x0 += 256) {
      const unsigned x = x0 + threadIdx.x, from = x / token_n, token = x % token_n;
      const bool there = from < members;
      const int e = there ? WHICH(from, token) : -1;
      const bool goes = exists(e) && e / experts == to;
      const unsigned ballot = __ballot_sync(whole_warp, goes);
      if (threadIdx.x % 32 == 0) votes[threadIdx.x / 32] = __popc(ballot);
      __syncthreads();
      int rank = came + __popc(ballot & ((1u << threadIdx.x % 32) - 1));
      for (unsigned w = 0; w < 8; ++w) {
        if (w < threadIdx.x / 32) rank += votes[w];
        came += votes[w];
      }
      __syncthreads();
      const bool fits = goes && rank < room;
      if (fits && to == member && o1) o1[rank * expert_step] = e;
      if (from != member || !(goes || (to == 0 && !exists(e)))) continue;
      const int place = fits ? begin + rank : -1;
      ((int*)work)[members * members + token] = place;
      if (o0) o0[at_o0(token)] = place;
    }
    if (to == member && o1)
      for (int row = came + int(threadIdx.x); row < room; row += 256) o1[row * expert_step] = -1;
  }
)cuda";
constexpr std::string_view lost_rows_text = R"cuda(
  for (unsigned b = thread; o4 && b < b_n; b += threads) {
    float lost = 0;
    for (unsigned k = 0; k < k_n; ++k)
      lost += exists(i0[member * member_step + at_i0(b, k)]) && ((const int*)work)[members * members + at_i1(b, k)] < 0;
    o4[at_o4(b, 0)] = lost;
  }
)cuda";

std::vector<CudaSource> write_group_rows(const Call& call) {
  const GroupRowsAttrs& a = call.attrs<GroupRowsAttrs>();
  const View &which = call.in[0], &place = call.out[0], &there = call.out[2], &back = call.out[3];
  const auto at = std::size_t(position(which.dims, a.whole)), here = std::size_t(position(place.dims, a.batch));
  const i64 members = call.graph.size(a.from);
  // A member's tokens in `which`, and their numbers.
  Call own{.graph = call.graph, .node = call.node, .in = {which, place}, .out = call.out};
  own.in[0].dims[at] = a.batch, own.in[0].sizes[at] = place.sizes[here];
  own.in[0].offsets[at] = place.offsets[here], own.in[0].limits[at] = place.limits[here];
  i64 tokens = 1;
  for (std::size_t d = place.dims.size(); d-- > 0; tokens *= place.valid(place.dims[d])) own.in[1].strides[d] = tokens;
  CudaText all(own), rows(own);
  for (CudaText* t : {&all, &rows}) {
    t->integer("members", members).integer("experts", a.experts / members);
    t->integer("member", members > 1 ? (place.offsets[here] - which.offsets[at]) / place.sizes[here] : 0);
    t->integer("member_step", place.sizes[here] * which.strides[at]).integer("room", call.out[1].size(a.rows));
    t->integer("expert_step", call.out[1].strides[0]);
    t->integer("there_from", there.strides[0]).integer("there_to", there.strides[1]);
    t->integer("back_to", back.strides[0]).integer("back_from", back.strides[1]).text(group_rows_text);
  }
  all.space("token", place.dims);
  rows.space("b", {a.batch}).space("k", without(place.dims, {a.batch}));
  const std::size_t work = std::size_t(members * members + tokens) * sizeof(std::int32_t);
  std::vector<CudaSource> launches{
      all.kernel(count_rows_text, {.grid = blocks_for(members * members, 1), .work = work}),
      all.kernel(place_rows_text, {.grid = blocks_for(members, 1), .block = 256, .work = work}),
      rows.kernel(lost_rows_text, {.grid = blocks_for(rows.count("b")), .work = work})};
  for (CudaSource& s : launches) s.operands = {0, 0};
  return launches;
}

constexpr CudaKernel group_rows_list[] = {{.name = "counted", .write = &write_group_rows}};

}  // namespace

std::span<const CudaKernel> group_rows_cuda_kernels() { return group_rows_list; }

}  // namespace stretto

// Rows by the places that a table of numbers names: pick and combine add them up, unpick and dispatch put them there.
// Sums follow the order of the table.
#include "stretto/ops/pick.h"

#include "stretto/kernels/cuda/kernel.h"
#include "stretto/ops/dispatch.h"

namespace stretto {
namespace {

// `i64 offset_of(int place)`: where a place along some dims of a view lies; -1: not here.
std::string place_text(const View& holder, const DimSet& over) {
  std::string t =
      "__device__ __forceinline__ i64 offset_of(int place) {\n  if (place < 0) return -1;\n  i64 at = 0, index = 0;\n";
  for (std::size_t i = over.size(); i-- > 0;) {
    const auto d = std::size_t(position(holder.dims, over[i]));
    t += fmt::format("  index = i64({}) - {}; {}\n", i > 0 ? fmt::format("place % {}", holder.limits[d]) : "place",
                     holder.offsets[d], i > 0 ? fmt::format("place /= {};", holder.limits[d]) : "");
    t += fmt::format("  if (index < 0 || index >= {}) return -1;\n  at += index * {};\n", holder.valid(over[i]),
                     holder.strides[d]);
  }
  return t + "  return at;\n}\n";
}

// A thread per element of the result.
std::vector<CudaSource> summed(const Call& call, const DimSet& over, std::string_view missing) {
  const DimSet all = without(joined(call.in[1].dims, call.in[0].dims), over);
  CudaText t(call);
  t.space("x", call.out[0].dims).space("k", without(all, call.out[0].dims));
  t.text(place_text(call.in[0], over)).text(fmt::format("#define MISSING {}\n", missing));
  return {t.kernel(R"cuda(
  for (unsigned x = thread; x < x_n; x += threads) {
    W sum = 0;
    for (unsigned k = 0; k < k_n; ++k) {
      const i64 at = offset_of(i1[at_i1(x, k)]);
      sum += at >= 0 ? W(get(i0 + at + at_i0(x, k))) : W(MISSING);
    }
    store(o0 + at_o0(x, 0), sum);
  }
)cuda",
                   {.grid = blocks_for(t.count("x"))})};
}
std::vector<CudaSource> write_pick(const Call& call) { return summed(call, call.attrs<PickAttrs>().over, "0"); }
std::vector<CudaSource> write_combine(const Call& call) {
  return summed(call, {call.attrs<CombineAttrs>().rows}, "no_number<W>()");
}

// Sums lie in the workspace, in what they are computed in, until all have come: a thread has a row's lane, and adds to
// it all rows that may go to one place.
std::vector<CudaSource> write_unpick(const Call& call) {
  const View &x = call.in[0], &which = call.in[1], &out = call.out[0];
  const DimSet& over = call.attrs<UnpickAttrs>().over;
  View sums = out;
  i64 stride = 1;
  for (std::size_t i = sums.dims.size(); i-- > 0;) sums.strides[i] = stride, stride *= sums.sizes[i];
  Call adding{.graph = call.graph, .node = call.node, .in = call.in, .out = {sums}};
  const DimSet kept = without(which.dims, without(which.dims, out.dims));
  CudaText zeros(call), add(adding), put(call);
  zeros.integer("elements", stride);
  add.space("row", kept).space("k", without(which.dims, out.dims));
  add.space("lane", without(without(out.dims, over), which.dims))
      .space("gone", without(without(x.dims, out.dims), which.dims));
  add.text(place_text(sums, over));
  put.space("x", out.dims, CudaText::padded);
  const std::size_t work = std::size_t(stride) * size_of(wide(x.dtype));
  return {
      zeros.kernel("for (i64 x = thread; x < elements; x += threads) ((W*)work)[x] = 0;\n",
                   {.grid = blocks_for(stride), .work = work}),
      add.kernel(R"cuda(
  for (unsigned x = thread; x < row_n * lane_n; x += threads) {
    const unsigned row = x / lane_n, lane = x % lane_n;
    for (unsigned k = 0; k < k_n; ++k) {
      const i64 at = offset_of(i1[at_i1(row, k, lane, 0)]);
      if (at < 0) continue;
      W* const to = (W*)work + at + at_o0(row, 0, lane, 0);
      for (unsigned gone = 0; gone < gone_n; ++gone) *to += get(i0 + at_i0(row, k, lane, gone));
    }
  }
)cuda",
                 {.grid = blocks_for(add.count("row") * add.count("lane")), .work = work}),
      put.kernel("for (unsigned x = thread; x < x_n; x += threads) store(o0 + at_o0(x), ((const W*)work)[x], adds);\n",
                 {.grid = blocks_for(put.count("x")), .work = work})};
}

std::vector<CudaSource> write_dispatch(const Call& call) {
  const View& out = call.out[0];
  const DimId rows = call.attrs<DispatchAttrs>().rows;
  CudaText zeros(call), t(call);
  zeros.space("x", out.dims, CudaText::padded);
  t.space("token", call.in[1].dims).space("lane", without(out.dims, {rows})).integer("step", out.stride(rows));
  return {zeros.kernel("for (unsigned x = thread; x < x_n; x += threads) o0[at_o0(x)] = Out0(0);\n",
                       {.grid = blocks_for(zeros.count("x"))}),
          t.kernel(R"cuda(
  for (i64 x = thread; x < i64(token_n) * lane_n; x += threads) {
    const unsigned token = x / lane_n, lane = x % lane_n;
    const int place = i1[at_i1(token, 0)];
    if (place >= 0) o0[place * step + at_o0(0, lane)] = i0[at_i0(token, lane)];
  }
)cuda",
                   {.grid = blocks_for(t.count("token") * t.count("lane"))})};
}

constexpr CudaKernel picking[] = {{.name = "gather", .write = &write_pick}};
constexpr CudaKernel unpicking[] = {{.name = "scatter", .write = &write_unpick}};
constexpr CudaKernel dispatching[] = {{.name = "scatter", .write = &write_dispatch}};
constexpr CudaKernel combining[] = {{.name = "gather", .write = &write_combine}};

}  // namespace

std::span<const CudaKernel> pick_cuda_kernels() { return picking; }
std::span<const CudaKernel> unpick_cuda_kernels() { return unpicking; }
std::span<const CudaKernel> dispatch_cuda_kernels() { return dispatching; }
std::span<const CudaKernel> combine_cuda_kernels() { return combining; }

}  // namespace stretto

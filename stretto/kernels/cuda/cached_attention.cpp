// Attention over rows that are kept: first the new ones are put into the caches, then a warp per query reads what it
// sees.
#include "stretto/ops/cached_attention.h"

#include "stretto/kernels/cuda/kernel.h"

namespace stretto {
namespace {

constexpr std::string_view append_text = R"cuda(
  for (unsigned x = thread; x < h_n * longest; x += threads) {
    const unsigned c = x % longest, h = x / longest;
    for (unsigned i = 0; i < i_n; ++i) {  // of two at one place the later one stays
      int row = i5[at_i5(0, 0, i, 0, 0, 0)];
      if (!within(row, room, now, fault)) row = 0;
      if (c < d_n) const_cast<In3*>(i3)[at_i3(h, 0, 0, row, c, 0)] = i1[at_i1(h, 0, i, 0, c, 0)];
      if (c < value_n) const_cast<In4*>(i4)[at_i4(h, 0, 0, row, VALUE(c))] = i2[at_i2(h, 0, i, 0, VALUE(c))];
    }
  }
)cuda";
constexpr std::string_view read_text = R"cuda(
  constexpr unsigned lanes_of_value = (value_n + 31) / 32;
  const unsigned lane = threadIdx.x % 32;
  for (unsigned q = blockIdx.x * 4 + threadIdx.x / 32; q < h_n * g_n * i_n; q += gridDim.x * 4) {
    const unsigned i = q % i_n, g = q / i_n % g_n, h = q / i_n / g_n;
    int own = i5[at_i5(0, 0, i, 0, 0, 0)];
    if (own < 0 || own >= room) own = 0;
    int from = window > 0 && own + 1 > window ? own + 1 - window : 0;
    if (chunk > 0 && own / chunk * chunk > from) from = own / chunk * chunk;
    W top = SINKS ? W(SINK) : lowest<W>(), sum = SINKS ? 1 : 0, out[lanes_of_value] = {};
    for (int begin = from; begin <= own; begin += 32) {
      const int j = begin + int(lane);
      W score = lowest<W>();
      if (j <= own) {
        score = 0;
        for (unsigned d = 0; d < d_n; ++d) score += get(i0 + at_i0(h, g, i, 0, d, 0)) * get(i3 + at_i3(h, 0, 0, j, d, 0));
        score *= scale;
        if (softcap > 0) score = softcap * tanh(score / softcap);
      }
      const W before = top;
      top = larger(top, warp_max(score));
      const W shrink = before > lowest<W>() ? exp(before - top) : W(0), p = j <= own ? exp(score - top) : W(0);
      sum = sum * shrink + warp_sum(p);
      for (unsigned n = 0; n < lanes_of_value; ++n) out[n] *= shrink;
      for (int other = 0; other < 32 && begin + other <= own; ++other) {
        const W weight = __shfl_sync(whole_warp, p, other);
#pragma unroll
        for (unsigned n = 0; n < lanes_of_value; ++n)
          if (const unsigned e = lane + 32 * n; e < value_n) out[n] += weight * get(i4 + at_i4(h, 0, 0, begin + other, VALUE(e)));
      }
    }
#pragma unroll
    for (unsigned n = 0; n < lanes_of_value; ++n)
      if (const unsigned e = lane + 32 * n; e < value_n) store(o0 + at_o0(h, g, i, 0, VALUE(e)), out[n] / sum);
  }
)cuda";

std::vector<CudaSource> write_cached_attention(const Call& call) {
  const CachedAttentionAttrs& a = call.attrs<CachedAttentionAttrs>();
  const View &q = call.in[0], &k = call.in[1], &keys = call.in[3];
  const DimSet inner{a.query, a.cache, a.head};
  const bool own_value = a.value != a.head;
  const i64 head = keys.valid(a.head), value = call.in[2].valid(a.value);
  CudaText t(call);
  t.space("h", without(k.dims, inner)).space("g", without(without(q.dims, k.dims), inner)).space("i", {a.query});
  t.space("j", {a.cache}).space("d", {a.head}).space("e", own_value ? DimSet{a.value} : DimSet{});
  t.integer("value_n", value).integer("longest", std::max(head, value)).integer("room", keys.valid(a.cache));
  t.integer("window", a.window).integer("chunk", a.chunk).number("scale", a.scale).number("softcap", a.softcap);
  t.text(own_value ? "#define VALUE(e) 0, e\n" : "#define VALUE(e) e, 0\n");
  t.text(call.in.size() > 6 ? "#define SINKS 1\n#define SINK get(i6 + at_i6(h, g, 0, 0, 0, 0))\n"
                            : "#define SINKS 0\n#define SINK W(0)\n");
  return {t.kernel(append_text, {.grid = blocks_for(t.count("h") * std::max(head, value))}),
          t.kernel(read_text, {.grid = blocks_for(t.count("h") * t.count("g") * t.count("i"), 4)})};
}

constexpr CudaKernel cached_attention_list[] = {{.name = "warps", .write = &write_cached_attention}};

}  // namespace

std::span<const CudaKernel> cached_attention_cuda_kernels() { return cached_attention_list; }

}  // namespace stretto

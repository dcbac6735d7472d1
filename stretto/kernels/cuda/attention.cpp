// Attention for every interval of keys, in any type: a warp per query, 32 keys at a time, each lane scoring one; and
// its gradient: per query first, then a warp per key. Nothing is added by two threads.
#include "stretto/ops/attention.h"

#include "stretto/kernels/cuda/attention_text.h"
#include "stretto/ops/attention_grad.h"

namespace stretto {
namespace {

constexpr unsigned warps = 4;  // of a block

// What forward and backward share: spaces, constants, which keys a query sees. `others`: operands before `since`.
constexpr std::string_view shared_text = R"cuda(
__device__ __forceinline__ i64 bounded(i64 x) { return x < 0 ? 0 : x > i64(j_n) ? i64(j_n) : x; }
// The one after the last key that query i sees, and the first.
__device__ __forceinline__ int seen_to(i64 until, unsigned i) { return UNTIL_GIVEN ? bounded(until - first_key) : CAUSAL ? bounded(first + i) : j_n; }
__device__ __forceinline__ int seen_from(i64 since, unsigned i) {
  const i64 own = first + i - 1;
  i64 start = since - first_key;
  if (chunk > 0 && own > start) start += (own - start) / chunk * chunk;
  if (window > 0 && start < own + 1 - window) start = own + 1 - window;
  return bounded(start);
}
__device__ __forceinline__ W capped(W score) { return softcap > 0 ? softcap * tanh(score / softcap) : score; }
)cuda";

}  // namespace

CudaText attention_text(const Call& call, int others) {
  const AttentionAttrs& a = call.attrs<AttentionAttrs>();
  const View &q = call.in[0], &k = call.in[1];
  const DimSet inner{a.query, a.key, a.head};
  const bool own_value = a.value != a.head;
  CudaText t(call);
  t.space("h", without(k.dims, inner)).space("g", without(without(q.dims, k.dims), inner));
  t.space("i", {a.query}).space("j", {a.key}).space("d", {a.head}).space("e", own_value ? DimSet{a.value} : DimSet{});
  t.integer("value_n", call.in[2].valid(a.value)).integer("first_key", offset_of(k, a.key));
  t.integer("first", offset_of(q, a.query) - offset_of(k, a.key) + 1)
      .integer("window", a.window)
      .integer("chunk", a.chunk);
  t.number("scale", a.scale).number("softcap", a.softcap);
  const std::optional<int> since = a.since_at(others), until = a.until_at(others);
  const auto number = [&](std::string_view name, std::optional<int> at, const char* other) {
    t.text(at ? fmt::format("#define {} i64(i{}[at_i{}(h, g, i, 0, 0, 0)])\n", name, *at, *at)
              : fmt::format("#define {} {}\n", name, other));
  };
  number("SINCE", since, "0"), number("UNTIL", until, "0");
  t.text(fmt::format("#define UNTIL_GIVEN {}\n#define CAUSAL {}\n", until ? 1 : 0, a.causal ? 1 : 0));
  t.text(own_value ? "#define VALUE(e) 0, e\n" : "#define VALUE(e) e, 0\n");
  const int sinks = others + int(a.since) + int(a.until);
  t.text(a.sinks ? fmt::format("#define SINKS 1\n#define SINK get(i{} + at_i{}(h, g, i, 0, 0, 0))\n", sinks, sinks)
                 : "#define SINKS 0\n#define SINK W(0)\n");
  return t.text(shared_text);
}

namespace {

unsigned blocks_of(i64 tasks) { return blocks_for(tasks, warps); }

std::vector<CudaSource> write_attention(const Call& call) {
  const CudaText t = attention_text(call, 3);
  const i64 queries = t.count("h") * t.count("g") * t.count("i");
  return {t.kernel(R"cuda(
  constexpr unsigned lanes_of_value = (value_n + 31) / 32;
  const unsigned lane = threadIdx.x % 32;
  for (unsigned q = blockIdx.x * 4 + threadIdx.x / 32; q < h_n * g_n * i_n; q += gridDim.x * 4) {
    const unsigned i = q % i_n, g = q / i_n % g_n, h = q / i_n / g_n;
    const int to = seen_to(UNTIL, i), from = min(seen_from(SINCE, i), to);
    W top = SINKS ? W(SINK) : lowest<W>(), sum = SINKS ? 1 : 0, out[lanes_of_value] = {};
    for (int begin = from; begin < to; begin += 32) {
      const int j = begin + int(lane);
      const bool sees = j < to;
      W score = lowest<W>();
      if (sees) {
        score = 0;
        for (unsigned d = 0; d < d_n; ++d) score += get(i0 + at_i0(h, g, i, 0, d, 0)) * get(i1 + at_i1(h, g, 0, j, d, 0));
        score = capped(score * scale);
      }
      const W before = top;
      top = larger(top, warp_max(score));
      const W shrink = before > lowest<W>() ? exp(before - top) : W(0), p = sees ? exp(score - top) : W(0);
      sum = sum * shrink + warp_sum(p);
      for (unsigned n = 0; n < lanes_of_value; ++n) out[n] *= shrink;
      for (int other = 0; other < 32 && begin + other < to; ++other) {
        const W weight = __shfl_sync(whole_warp, p, other);
#pragma unroll
        for (unsigned n = 0; n < lanes_of_value; ++n)
          if (const unsigned e = lane + 32 * n; e < value_n) out[n] += weight * get(i2 + at_i2(h, g, 0, begin + other, VALUE(e)));
      }
    }
    const W factor = sum > 0 ? W(1) / sum : W(0);
#pragma unroll
    for (unsigned n = 0; n < lanes_of_value; ++n)
      if (const unsigned e = lane + 32 * n; o0 && e < value_n) store(o0 + at_o0(h, g, i, 0, VALUE(e)), out[n] * factor);
    if (o1 && lane == 0) o1[at_o1(h, g, i, 0, 0, 0)] = sum > 0 ? top + log(sum) : W(0);
  }
)cuda",
                   {.grid = blocks_of(queries)})};
}

// A lane's weight p of its pair of query and key, and ds, the gradient of the pair's score before scaling. dot: of the
// query's output and gradient.
constexpr std::string_view pair_text = R"cuda(
#define PAIR(p, ds, dot) \
  W score = 0, weight = 0, slope_of_cap = 1; \
  for (unsigned d = 0; d < d_n; ++d) score += get(i0 + at_i0(h, g, i, 0, d, 0)) * get(i1 + at_i1(h, g, 0, j, d, 0)); \
  for (unsigned e = 0; e < value_n; ++e) weight += get(i5 + at_i5(h, g, i, 0, VALUE(e))) * get(i2 + at_i2(h, g, 0, j, VALUE(e))); \
  score *= scale; \
  if (softcap > 0) { const W x = tanh(score / softcap); score = softcap * x, slope_of_cap = 1 - x * x; } \
  p = exp(score - i4[at_i4(h, g, i, 0, 0, 0)]); \
  ds = p * (weight - dot) * slope_of_cap * scale;
)cuda";

constexpr std::string_view per_query = R"cuda(
  constexpr unsigned lanes_of_head = (d_n + 31) / 32;
  const unsigned lane = threadIdx.x % 32;
  for (unsigned q = blockIdx.x * 4 + threadIdx.x / 32; q < h_n * g_n * i_n; q += gridDim.x * 4) {
    const unsigned i = q % i_n, g = q / i_n % g_n, h = q / i_n / g_n;
    W dot = 0, out[lanes_of_head] = {};
    for (unsigned e = lane; e < value_n; e += 32) dot += get(i3 + at_i3(h, g, i, 0, VALUE(e))) * get(i5 + at_i5(h, g, i, 0, VALUE(e)));
    dot = warp_sum(dot);
    if (lane == 0) ((W*)work)[q] = dot;
    if (!o0) continue;
    const int to = seen_to(UNTIL, i), from = min(seen_from(SINCE, i), to);
    for (int begin = from; begin < to; begin += 32) {
      const int j = begin + int(lane);
      W p = 0, ds = 0;
      if (j < to) { PAIR(p, ds, dot) }
      for (int other = 0; other < 32 && begin + other < to; ++other) {
        const W slope_of_pair = __shfl_sync(whole_warp, ds, other);
#pragma unroll
        for (unsigned n = 0; n < lanes_of_head; ++n)
          if (const unsigned d = lane + 32 * n; d < d_n) out[n] += slope_of_pair * get(i1 + at_i1(h, g, 0, begin + other, d, 0));
      }
    }
#pragma unroll
    for (unsigned n = 0; n < lanes_of_head; ++n)
      if (const unsigned d = lane + 32 * n; d < d_n) store(o0 + at_o0(h, g, i, 0, d, 0), out[n]);
  }
)cuda";
constexpr std::string_view per_key = R"cuda(
  constexpr unsigned lanes_of_head = (d_n + 31) / 32, lanes_of_value = (value_n + 31) / 32;
  const unsigned lane = threadIdx.x % 32;
  for (unsigned key = blockIdx.x * 4 + threadIdx.x / 32; key < h_n * j_n; key += gridDim.x * 4) {
    const unsigned h = key / j_n;
    const int j = key % j_n;
    W keys[lanes_of_head] = {}, values[lanes_of_value] = {};
    for (unsigned g = 0; g < g_n; ++g)
      for (unsigned begin = 0; begin < i_n; begin += 32) {
        const unsigned i = begin + lane;
        bool sees = false;
        W p = 0, ds = 0;
        if (i < i_n) sees = j >= seen_from(SINCE, i) && j < seen_to(UNTIL, i);
        if (sees) {
          const W dot = ((const W*)work)[(h * g_n + g) * i_n + i];
          PAIR(p, ds, dot)
        }
        if (__ballot_sync(whole_warp, sees) == 0) continue;
        for (unsigned other = 0; other < 32 && begin + other < i_n; ++other) {
          const W weight_of_pair = __shfl_sync(whole_warp, p, other), slope_of_pair = __shfl_sync(whole_warp, ds, other);
#pragma unroll
          for (unsigned n = 0; n < lanes_of_value; ++n)
            if (const unsigned e = lane + 32 * n; e < value_n) values[n] += weight_of_pair * get(i5 + at_i5(h, g, begin + other, 0, VALUE(e)));
#pragma unroll
          for (unsigned n = 0; n < lanes_of_head; ++n)
            if (const unsigned d = lane + 32 * n; d < d_n) keys[n] += slope_of_pair * get(i0 + at_i0(h, g, begin + other, 0, d, 0));
        }
      }
#pragma unroll
    for (unsigned n = 0; n < lanes_of_head; ++n)
      if (const unsigned d = lane + 32 * n; o1 && d < d_n) store(o1 + at_o1(h, 0, 0, j, d, 0), keys[n]);
#pragma unroll
    for (unsigned n = 0; n < lanes_of_value; ++n)
      if (const unsigned e = lane + 32 * n; o2 && e < value_n) store(o2 + at_o2(h, 0, 0, j, VALUE(e)), values[n]);
  }
)cuda";

std::vector<CudaSource> write_attention_grad(const Call& call) {
  CudaText t = attention_text(call, 6);
  t.text(pair_text);
  const i64 queries = t.count("h") * t.count("g") * t.count("i");
  const std::size_t work = std::size_t(queries) * size_of(wide(call.in[0].dtype));
  return {t.kernel(per_query, {.grid = blocks_of(queries), .work = work}),
          t.kernel(per_key, {.grid = blocks_of(t.count("h") * t.count("j")), .work = work})};
}

constexpr CudaKernel attention_list[] = {
    {.name = "tiles", .accepts = &accepts_attention_tiles, .write = &write_attention_tiles},
    {.name = "warps", .write = &write_attention}};
constexpr CudaKernel attention_grad_list[] = {
    {.name = "tiles", .accepts = &accepts_attention_grad_tiles, .write = &write_attention_grad_tiles},
    {.name = "warps", .write = &write_attention_grad}};

}  // namespace

std::span<const CudaKernel> attention_cuda_kernels() { return attention_list; }
std::span<const CudaKernel> attention_grad_cuda_kernels() { return attention_grad_list; }

}  // namespace stretto

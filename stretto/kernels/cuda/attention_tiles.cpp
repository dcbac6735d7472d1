// Attention on tensor cores for every interval of keys: a warp per 16 queries, 16 keys at a time, scores and weights in
// registers; backward first per query, then a warp per 16 keys. Weights are rounded to bf16 where they are multiplied,
// everything is added up in f32, nothing by two threads.
#include "stretto/kernels/cuda/attention_text.h"
#include "stretto/ops/attention.h"

namespace stretto {
namespace {

constexpr unsigned warps_of_block = 4;
constexpr i64 most_of_head = 192, most_of_both = 320;  // of a head and its value: what is in registers

// A warp's products are of 16 x 16 by 16 x 8 elements. Of its lanes, lane / 4 is a row (and the row 8 below) of the
// left factor and the result and a column of the right factor; lane % 4 * 2 is the first of two neighbours in the other
// dim (and of two 8 further).
constexpr std::string_view tile_functions = R"cuda(
__device__ __forceinline__ unsigned both(float first, float second) {
  unsigned r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(second), "f"(first));
  return r;
}
__device__ __forceinline__ void multiply(float* c, const unsigned* a, unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// Two neighbours of a row; whole: as one word.
__device__ __forceinline__ unsigned two(const bf16* p, i64 step, bool whole, bool second) {
  if (whole) return *(const unsigned*)p;
  return p->bits | (second ? (unsigned)p[step].bits << 16 : 0u);
}
#define TWO(AT, row, rows, x, size, step, whole) ((row) < (rows) && (x) < (size) ? two(AT(row, x), step, whole, (x) + 1 < (size)) : 0u)
// The same element of two neighbouring rows.
#define BELOW(AT, row, rows, x, size) ((x) < (size) ? ((row) < (rows) ? (unsigned)AT(row, x)->bits : 0u) | ((row) + 1 < (rows) ? (unsigned)AT((row) + 1, x)->bits << 16 : 0u) : 0u)
#define Q(i, d) (i0 + at_i0(h, g, i, 0, d, 0))
#define K(j, d) (i1 + at_i1(h, g, 0, j, d, 0))
#define V(j, e) (i2 + at_i2(h, g, 0, j, VALUE(e)))
#define DY(i, e) (i5 + at_i5(h, g, i, 0, VALUE(e)))
#define WHOLE(p, even) ((even) && (u64)(p) % 4 == 0)
constexpr unsigned rows_of_tile = 16, D16 = (d_n + 15) / 16, E16 = (value_n + 15) / 16, D8 = (d_n + 7) / 8, E8 = (value_n + 7) / 8;
constexpr float log2e = 1.4426950408889634f;
// What large heads read again in every round is not kept in registers: there are too few.
#define READ_AGAIN if (d_n + value_n > 128) asm volatile("" ::: "memory")
)cuda";

// Results of a product of 16 x 16 are left factors of the next one: its two columns of 8 side by side.
constexpr std::string_view forward = R"cuda(
  constexpr unsigned tiles = (i_n + 15) / 16;
  const unsigned lane = threadIdx.x % 32, r = lane / 4, c = lane % 4 * 2;
  const bool whole_q = WHOLE(i0, even_q), whole_k = WHOLE(i1, even_k);
  for (unsigned tile = blockIdx.x * 4 + threadIdx.x / 32; tile < h_n * g_n * tiles; tile += gridDim.x * 4) {
    const unsigned first_i = tile % tiles * 16, g = tile / tiles % g_n, h = tile / tiles / g_n;
    unsigned a[D16][4];
#pragma unroll
    for (unsigned d = 0; d < D16; ++d)
#pragma unroll
      for (unsigned n = 0; n < 4; ++n)
        a[d][n] = TWO(Q, first_i + r + 8 * (n & 1), i_n, 16 * d + c + 8 * (n / 2), d_n, step_q, whole_q);
    float out[E8][4] = {}, top[2], sum[2];
    int from[2] = {0, 0}, to[2] = {0, 0};
    int begin = j_n, end = 0;
#pragma unroll
    for (unsigned x = 0; x < 2; ++x) {
      const unsigned i = first_i + r + 8 * x;
      top[x] = lowest<float>(), sum[x] = 0;
      if (i >= i_n) continue;
      to[x] = seen_to(UNTIL, i), from[x] = min(seen_from(SINCE, i), to[x]);
      if (SINKS) top[x] = SINK * log2e, sum[x] = 1;
      if (from[x] < to[x]) begin = min(begin, from[x]), end = max(end, to[x]);
    }
    for (int d = 4; d < 32; d *= 2) {
      begin = min(begin, __shfl_xor_sync(whole_warp, begin, d));
      end = max(end, __shfl_xor_sync(whole_warp, end, d));
    }
    for (int first_j = begin; first_j < end; first_j += 16) {
      float s[2][4] = {};
#pragma unroll
      for (unsigned n = 0; n < 2; ++n)
#pragma unroll
        for (unsigned d = 0; d < D16; ++d) {
          const int j = first_j + 8 * n + r;
          multiply(s[n], a[d], TWO(K, j, end, 16 * d + c, d_n, step_k, whole_k), TWO(K, j, end, 16 * d + c + 8, d_n, step_k, whole_k));
        }
#pragma unroll
      for (unsigned x = 0; x < 2; ++x) {
        float high = top[x], all = 0;
#pragma unroll
        for (unsigned n = 0; n < 4; ++n) {
          const int j = first_j + 8 * (n / 2) + c + n % 2;
          float& v = s[n / 2][2 * x + n % 2];
          v = j >= from[x] && j < to[x] ? capped(v * scale) * log2e : lowest<float>();
          high = larger(high, v);
        }
        high = larger(high, __shfl_xor_sync(whole_warp, high, 1));
        high = larger(high, __shfl_xor_sync(whole_warp, high, 2));
        const float shrink = top[x] > lowest<float>() ? exp2f(top[x] - high) : 0;
#pragma unroll
        for (unsigned n = 0; n < 4; ++n) {
          float& v = s[n / 2][2 * x + n % 2];
          v = v == lowest<float>() ? 0 : exp2f(v - high);
          all += v;
        }
        all += __shfl_xor_sync(whole_warp, all, 1);
        all += __shfl_xor_sync(whole_warp, all, 2);
        sum[x] = sum[x] * shrink + all, top[x] = high;
#pragma unroll
        for (unsigned n = 0; n < E8; ++n) out[n][2 * x] *= shrink, out[n][2 * x + 1] *= shrink;
      }
      const unsigned p[4] = {both(s[0][0], s[0][1]), both(s[0][2], s[0][3]), both(s[1][0], s[1][1]), both(s[1][2], s[1][3])};
#pragma unroll
      for (unsigned n = 0; n < E8; ++n)
        multiply(out[n], p, BELOW(V, first_j + int(c), end, 8 * n + r, value_n), BELOW(V, first_j + int(c) + 8, end, 8 * n + r, value_n));
    }
#pragma unroll
    for (unsigned x = 0; x < 2; ++x) {
      const unsigned i = first_i + r + 8 * x;
      if (i >= i_n) continue;
      const float factor = sum[x] > 0 ? 1 / sum[x] : sum[x];
#pragma unroll
      for (unsigned n = 0; n < 2 * E8; ++n)
        if (const unsigned e = 8 * (n / 2) + c + n % 2; o0 && e < value_n)
          store(o0 + at_o0(h, g, i, 0, VALUE(e)), out[n / 2][2 * x + n % 2] * factor);
      if (o1 && c == 0) o1[at_o1(h, g, i, 0, 0, 0)] = sum[x] > 0 ? top[x] / log2e + log(sum[x]) : sum[x];
    }
  }
)cuda";

// The weight p of a pair, and ds, the gradient of its score before scaling.
constexpr std::string_view pair_of_tile = R"cuda(
__device__ __forceinline__ void pair(float& score, float& weight, float lse, float dot) {
  float s = score * scale, slope_of_cap = 1;
  if (softcap > 0) { const float x = tanh(s / softcap); s = softcap * x, slope_of_cap = 1 - x * x; }
  const float p = exp2f((s - lse) * log2e);
  score = p, weight = p * (weight - dot) * slope_of_cap * scale;
}
)cuda";

constexpr std::string_view backward_per_query = R"cuda(
  constexpr unsigned tiles = (i_n + 15) / 16;
  const unsigned lane = threadIdx.x % 32, r = lane / 4, c = lane % 4 * 2;
  const bool whole_q = WHOLE(i0, even_q), whole_k = WHOLE(i1, even_k), whole_v = WHOLE(i2, even_v), whole_dy = WHOLE(i5, even_dy);
  for (unsigned tile = blockIdx.x * 4 + threadIdx.x / 32; tile < h_n * g_n * tiles; tile += gridDim.x * 4) {
    const unsigned first_i = tile % tiles * 16, g = tile / tiles % g_n, h = tile / tiles / g_n;
    float dot[2] = {0, 0}, lse[2] = {0, 0};
    int from[2] = {0, 0}, to[2] = {0, 0};
    int begin = j_n, end = 0;
#pragma unroll
    for (unsigned x = 0; x < 2; ++x) {
      const unsigned i = first_i + r + 8 * x;
      if (i >= i_n) continue;
      for (unsigned e = lane % 4; e < value_n; e += 4) dot[x] += get(i3 + at_i3(h, g, i, 0, VALUE(e))) * get(DY(i, e));
      lse[x] = i4[at_i4(h, g, i, 0, 0, 0)];
      to[x] = seen_to(UNTIL, i), from[x] = min(seen_from(SINCE, i), to[x]);
      if (from[x] < to[x]) begin = min(begin, from[x]), end = max(end, to[x]);
    }
#pragma unroll
    for (unsigned x = 0; x < 2; ++x) {
      dot[x] += __shfl_xor_sync(whole_warp, dot[x], 1);
      dot[x] += __shfl_xor_sync(whole_warp, dot[x], 2);
      if (const unsigned i = first_i + r + 8 * x; c == 0 && i < i_n) ((float*)work)[(h * g_n + g) * i_n + i] = dot[x];
    }
    for (int d = 4; d < 32; d *= 2) {
      begin = min(begin, __shfl_xor_sync(whole_warp, begin, d));
      end = max(end, __shfl_xor_sync(whole_warp, end, d));
    }
    if (!o0) continue;
    float out[D8][4] = {};
    for (int first_j = begin; first_j < end; first_j += 16) {
      READ_AGAIN;
      float s[2][4] = {}, w[2][4] = {};
#pragma unroll 2
      for (unsigned d = 0; d < D16; ++d) {
        unsigned a[4];
#pragma unroll
        for (unsigned n = 0; n < 4; ++n)
          a[n] = TWO(Q, first_i + r + 8 * (n & 1), i_n, 16 * d + c + 8 * (n / 2), d_n, step_q, whole_q);
#pragma unroll
        for (unsigned n = 0; n < 2; ++n) {
          const int j = first_j + 8 * n + r;
          multiply(s[n], a, TWO(K, j, end, 16 * d + c, d_n, step_k, whole_k), TWO(K, j, end, 16 * d + c + 8, d_n, step_k, whole_k));
        }
      }
#pragma unroll 2
      for (unsigned e = 0; e < E16; ++e) {
        unsigned a[4];
#pragma unroll
        for (unsigned n = 0; n < 4; ++n)
          a[n] = TWO(DY, first_i + r + 8 * (n & 1), i_n, 16 * e + c + 8 * (n / 2), value_n, step_dy, whole_dy);
#pragma unroll
        for (unsigned n = 0; n < 2; ++n) {
          const int j = first_j + 8 * n + r;
          multiply(w[n], a, TWO(V, j, end, 16 * e + c, value_n, step_v, whole_v), TWO(V, j, end, 16 * e + c + 8, value_n, step_v, whole_v));
        }
      }
#pragma unroll
      for (unsigned n = 0; n < 8; ++n) {
        const unsigned x = n / 2 % 2;
        const int j = first_j + 8 * (n / 4) + c + n % 2;
        float &p = s[n / 4][n % 4], &ds = w[n / 4][n % 4];
        pair(p, ds, lse[x], dot[x]);
        if (j < from[x] || j >= to[x]) ds = 0;
      }
      const unsigned a[4] = {both(w[0][0], w[0][1]), both(w[0][2], w[0][3]), both(w[1][0], w[1][1]), both(w[1][2], w[1][3])};
#pragma unroll
      for (unsigned n = 0; n < D8; ++n)
        multiply(out[n], a, BELOW(K, first_j + int(c), end, 8 * n + r, d_n), BELOW(K, first_j + int(c) + 8, end, 8 * n + r, d_n));
    }
#pragma unroll
    for (unsigned n = 0; n < 4 * D8; ++n)
      if (const unsigned i = first_i + r + 8 * (n / 2 % 2), d = 8 * (n / 4) + c + n % 2; i < i_n && d < d_n)
        store(o0 + at_o0(h, g, i, 0, d, 0), out[n / 4][n % 4]);
  }
)cuda";

// Rows are keys, columns are queries.
constexpr std::string_view backward_per_key = R"cuda(
  constexpr unsigned tiles = (j_n + 15) / 16;
  const unsigned lane = threadIdx.x % 32, r = lane / 4, c = lane % 4 * 2;
  const bool whole_q = WHOLE(i0, even_q), whole_k = WHOLE(i1, even_k), whole_v = WHOLE(i2, even_v), whole_dy = WHOLE(i5, even_dy);
  for (unsigned tile = blockIdx.x * 4 + threadIdx.x / 32; tile < h_n * tiles; tile += gridDim.x * 4) {
    const unsigned first_j = tile % tiles * 16, h = tile / tiles;
    float keys[D8][4] = {}, values[E8][4] = {};
    for (unsigned g = 0; g < g_n; ++g)
      for (unsigned first_i = 0; first_i < i_n; first_i += 16) {
        float s[2][4] = {}, w[2][4] = {}, lse[4], dot[4];
        int from[4], to[4];
        bool sees = false;
#pragma unroll
        for (unsigned n = 0; n < 4; ++n) {
          const unsigned i = first_i + 8 * (n / 2) + c + n % 2;
          from[n] = to[n] = 0, lse[n] = dot[n] = 0;
          if (i >= i_n) continue;
          to[n] = seen_to(UNTIL, i), from[n] = min(seen_from(SINCE, i), to[n]);
          lse[n] = i4[at_i4(h, g, i, 0, 0, 0)], dot[n] = ((const float*)work)[(h * g_n + g) * i_n + i];
          sees = sees || (from[n] < int(first_j) + 16 && to[n] > int(first_j));
        }
        if (__ballot_sync(whole_warp, sees) == 0) continue;
        READ_AGAIN;
#pragma unroll 2
        for (unsigned d = 0; d < D16; ++d) {
          unsigned a[4];
#pragma unroll
          for (unsigned n = 0; n < 4; ++n)
            a[n] = TWO(K, first_j + r + 8 * (n & 1), j_n, 16 * d + c + 8 * (n / 2), d_n, step_k, whole_k);
#pragma unroll
          for (unsigned n = 0; n < 2; ++n) {
            const unsigned i = first_i + 8 * n + r;
            multiply(s[n], a, TWO(Q, i, i_n, 16 * d + c, d_n, step_q, whole_q), TWO(Q, i, i_n, 16 * d + c + 8, d_n, step_q, whole_q));
          }
        }
#pragma unroll 2
        for (unsigned e = 0; e < E16; ++e) {
          unsigned a[4];
#pragma unroll
          for (unsigned n = 0; n < 4; ++n)
            a[n] = TWO(V, first_j + r + 8 * (n & 1), j_n, 16 * e + c + 8 * (n / 2), value_n, step_v, whole_v);
#pragma unroll
          for (unsigned n = 0; n < 2; ++n) {
            const unsigned i = first_i + 8 * n + r;
            multiply(w[n], a, TWO(DY, i, i_n, 16 * e + c, value_n, step_dy, whole_dy), TWO(DY, i, i_n, 16 * e + c + 8, value_n, step_dy, whole_dy));
          }
        }
#pragma unroll
        for (unsigned n = 0; n < 8; ++n) {
          const unsigned q = n / 4 * 2 + n % 2;
          const int j = int(first_j + r + 8 * (n / 2 % 2));
          float &p = s[n / 4][n % 4], &ds = w[n / 4][n % 4];
          pair(p, ds, lse[q], dot[q]);
          if (j < from[q] || j >= to[q]) p = ds = 0;
        }
        const unsigned a[4] = {both(s[0][0], s[0][1]), both(s[0][2], s[0][3]), both(s[1][0], s[1][1]), both(s[1][2], s[1][3])};
        const unsigned b[4] = {both(w[0][0], w[0][1]), both(w[0][2], w[0][3]), both(w[1][0], w[1][1]), both(w[1][2], w[1][3])};
#pragma unroll
        for (unsigned n = 0; n < E8; ++n)
          multiply(values[n], a, BELOW(DY, first_i + c, i_n, 8 * n + r, value_n), BELOW(DY, first_i + c + 8, i_n, 8 * n + r, value_n));
#pragma unroll
        for (unsigned n = 0; n < D8; ++n)
          multiply(keys[n], b, BELOW(Q, first_i + c, i_n, 8 * n + r, d_n), BELOW(Q, first_i + c + 8, i_n, 8 * n + r, d_n));
      }
#pragma unroll
    for (unsigned n = 0; n < 4 * D8; ++n)
      if (const unsigned j = first_j + r + 8 * (n / 2 % 2), d = 8 * (n / 4) + c + n % 2; o1 && j < j_n && d < d_n)
        store(o1 + at_o1(h, 0, 0, j, d, 0), keys[n / 4][n % 4]);
#pragma unroll
    for (unsigned n = 0; n < 4 * E8; ++n)
      if (const unsigned j = first_j + r + 8 * (n / 2 % 2), e = 8 * (n / 4) + c + n % 2; o2 && j < j_n && e < value_n)
        store(o2 + at_o2(h, 0, 0, j, VALUE(e)), values[n / 4][n % 4]);
  }
)cuda";

// Elements of a head from one to the next, and whether two neighbours are a word wherever the first one's index is even
// and the view begins at a word.
void steps(CudaText& t, const View& v, DimId along, std::string_view name) {
  bool even = v.stride(along) == 1 && v.valid(along) % 2 == 0;
  for (const DimId d : v.dims) even = even && (d == along || v.stride(d) % 2 == 0 || v.size(d) == 1);
  t.integer(fmt::format("step_{}", name), v.stride(along));
  t.text(fmt::format("constexpr bool even_{} = {};\n", name, even));
}

CudaText tiles_text(const Call& call, int others) {
  const AttentionAttrs& a = call.attrs<AttentionAttrs>();
  CudaText t = attention_text(call, others);
  steps(t, call.in[0], a.head, "q"), steps(t, call.in[1], a.head, "k"), steps(t, call.in[2], a.value, "v");
  return t.text(tile_functions);
}
unsigned blocks_of_tiles(i64 tiles) { return blocks_for(tiles, warps_of_block); }

}  // namespace

bool accepts_attention_tiles(const Call& call) {
  const AttentionAttrs& a = call.attrs<AttentionAttrs>();
  const i64 head = call.in[0].size(a.head), value = call.in[2].size(a.value);
  for (std::size_t i = 0; i < 3; ++i)
    if (call.in[i].dtype != bf16) return false;
  return head <= most_of_head && value <= most_of_head && head + value <= most_of_both;
}

bool accepts_attention_grad_tiles(const Call& call) {
  return accepts_attention_tiles(call) && call.in[5].dtype == bf16;
}

std::vector<CudaSource> write_attention_tiles(const Call& call) {
  const CudaText t = tiles_text(call, 3);
  return {t.kernel(forward, {.grid = blocks_of_tiles(t.count("h") * t.count("g") * ((t.count("i") + 15) / 16))})};
}

std::vector<CudaSource> write_attention_grad_tiles(const Call& call) {
  CudaText t = tiles_text(call, 6);
  steps(t, call.in[5], call.attrs<AttentionAttrs>().value, "dy");
  t.text(pair_of_tile);
  const i64 heads = t.count("h"), queries = heads * t.count("g") * t.count("i");
  return {t.kernel(backward_per_query, {.grid = blocks_of_tiles(heads * t.count("g") * ((t.count("i") + 15) / 16)),
                                        .work = std::size_t(queries) * sizeof(float)}),
          t.kernel(backward_per_key, {.grid = blocks_of_tiles(heads * ((t.count("j") + 15) / 16))})};
}

}  // namespace stretto

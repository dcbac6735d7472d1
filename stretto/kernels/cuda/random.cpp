// Random numbers are functions of logical indices only, and the CPU's: dropout, and rounding of states.
#include "stretto/ops/dropout.h"

#include <map>

#include "stretto/kernels/cuda/kernel.h"
#include "stretto/ops/stochastic_round.h"

namespace stretto {
namespace {

// Philox 4x32-10: word i % 4 of block i / 4.
std::string_view cuda_random_words() {
  return R"cuda(
__device__ __forceinline__ unsigned random_word(u64 i, unsigned c2, unsigned c3, u64 key) {
  unsigned c0 = (unsigned)(i / 4), c1 = (unsigned)(i / 4 >> 32), k0 = (unsigned)key, k1 = (unsigned)(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const u64 a = u64(0xD2511F53u) * c0, b = u64(0xCD9E8D57u) * c2;
    c0 = (unsigned)(b >> 32) ^ c1 ^ k0, c1 = (unsigned)b, c2 = (unsigned)(a >> 32) ^ c3 ^ k1, c3 = (unsigned)a;
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  const unsigned which = (unsigned)i & 3;
  return which < 2 ? (which ? c1 : c0) : which == 2 ? c2 : c3;
}
)cuda";
}

std::vector<CudaSource> write_dropout(const Call& call) {
  const View& x = call.in[0];
  const DropoutAttrs& a = call.attrs<DropoutAttrs>();
  const DimSet sequence = without(x.dims, a.batch);
  // Where an element of this shard stands in its logical sequence, as a third place beside those of operand and result.
  std::string index;
  i64 weight = 1, below = 1, first = 0;
  for (std::size_t i = sequence.size(); i-- > 0;) {
    const auto d = std::size_t(position(x.dims, sequence[i]));
    index += fmt::format(" + u64(e / {}u % {}u) * {}ull", below, x.sizes[d], weight);
    first += x.offsets[d] * weight;
    below *= x.sizes[d], weight *= x.limits[d];
  }
  const i64 first_row = a.batch.empty() ? 0 : x.offsets[std::size_t(position(x.dims, a.batch[0]))];
  CudaText t(call);
  t.space("row", a.batch, CudaText::padded).space("e", sequence, CudaText::padded);
  t.number("scale", 1 / (1 - a.rate)).integer("first_row", first_row);
  t.text(fmt::format("constexpr unsigned threshold = {}u;\n", std::uint32_t(a.rate * 0x1p32)));
  t.text(fmt::format("__device__ __forceinline__ u64 place(unsigned e) {{ return {}ull{}; }}\n", first, index));
  t.text(cuda_random_words());
  return {t.kernel(R"cuda(
  for (unsigned x = thread; x < row_n * e_n; x += threads) {
    const unsigned row = x / e_n, e = x % e_n;
    const bool dropped = random_word(place(e), (unsigned)(now.first_row + first_row + row), (unsigned)now.step, now.random) < threshold;
    store(o0 + at_o0(row, e), dropped ? W(0) : get(i0 + at_i0(row, e)) * scale);
  }
)cuda",
                   {.grid = blocks_for(t.count("row") * t.count("e"))})};
}

// The logical index of element e of the box that x is or lies in, which may itself be a rank's part of the whole.
std::string logical_index(const Call& call) {
  const StochasticRoundAttrs& a = call.attrs<StochasticRoundAttrs>();
  const View& x = call.in[0];
  std::vector<i64> sizes = x.sizes, offsets = x.offsets, limits = x.limits;
  if (!a.box.empty()) {
    sizes.clear(), limits.clear(), offsets.assign(a.box.size(), 0);
    for (const DimId d : a.box) sizes.push_back(call.graph.size(d)), limits.push_back(call.graph.dim(d).valid());
  }
  std::map<std::size_t, int> told;  // by an operand: which block of such a size the box is
  for (int operand = 1; const i64 d : a.split) told[std::size_t(d)] = operand++;
  std::string t;
  i64 weight = 1;
  for (std::size_t d = sizes.size(); d-- > 0;) {
    const std::string start =
        told.contains(d) ? fmt::format("i64(*i{}) * {}", told[d], sizes[d]) : fmt::format("{}", offsets[d]);
    t += fmt::format("index += ({} + {}) * {}ll; e /= {};\n", start, d > 0 ? fmt::format("e % {}", sizes[d]) : "e",
                     weight, std::max<i64>(sizes[d], 1));
    weight *= limits[d];
  }
  return t;
}

std::vector<CudaSource> write_stochastic_round(const Call& call) {
  const StochasticRoundAttrs& a = call.attrs<StochasticRoundAttrs>();
  const View& x = call.in[0];
  CudaText t(call);
  t.space("x", x.dims, CudaText::padded).integer("which", a.which).integer("first", a.box.empty() ? 0 : x.offsets[0]);
  t.text(cuda_random_words());
  return {t.kernel("for (unsigned x = thread; x < x_n; x += threads) {\ni64 e = first + x, index = 0;\n" +
                       logical_index(call) + R"cuda(
    const unsigned half = random_word(u64(index) / 2, (unsigned)which, (unsigned)now.step, now.random) >> (index % 2 * 16) & 0xffffu;
    const unsigned bits = __float_as_uint(float(get(i0 + at_i0(x))));
    o0[at_o0(x)].bits = (bits & 0x7fffffffu) >= 0x7f800000u ? bits >> 16 | ((bits & 0xffffu) != 0) : (bits + half) >> 16;
  }
)cuda",
                   {.grid = blocks_for(t.count("x"))})};
}

constexpr CudaKernel stochastic_round_list[] = {{.name = "philox", .write = &write_stochastic_round}};
constexpr CudaKernel dropout_list[] = {{.name = "philox", .write = &write_dropout}};

}  // namespace

std::span<const CudaKernel> stochastic_round_cuda_kernels() { return stochastic_round_list; }
std::span<const CudaKernel> dropout_cuda_kernels() { return dropout_list; }

}  // namespace stretto

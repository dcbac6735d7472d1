// Dropout: an element's random word is a function of logical indices only, as on the CPU.
#include "stretto/ops/dropout.h"

#include "stretto/kernels/cuda/kernel.h"

namespace stretto {
namespace {

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
  t.text(R"cuda(
__device__ __forceinline__ unsigned word(u64 i, unsigned row, unsigned step, u64 key) {
  unsigned c0 = (unsigned)(i / 4), c1 = (unsigned)(i / 4 >> 32), c2 = row, c3 = step, k0 = (unsigned)key, k1 = (unsigned)(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const u64 a = u64(0xD2511F53u) * c0, b = u64(0xCD9E8D57u) * c2;
    c0 = (unsigned)(b >> 32) ^ c1 ^ k0, c1 = (unsigned)b, c2 = (unsigned)(a >> 32) ^ c3 ^ k1, c3 = (unsigned)a;
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  const unsigned which = (unsigned)i & 3;
  return which < 2 ? (which ? c1 : c0) : which == 2 ? c2 : c3;
}
)cuda");
  return {t.kernel(R"cuda(
  for (unsigned x = thread; x < row_n * e_n; x += threads) {
    const unsigned row = x / e_n, e = x % e_n;
    const bool dropped = word(place(e), (unsigned)(now.first_row + first_row + row), (unsigned)now.step, now.random) < threshold;
    store(o0 + at_o0(row, e), dropped ? W(0) : get(i0 + at_i0(row, e)) * scale);
  }
)cuda",
                   {.grid = blocks_for(t.count("row") * t.count("e"))})};
}

constexpr CudaKernel dropout_list[] = {{.name = "philox", .write = &write_dropout}};

}  // namespace

std::span<const CudaKernel> dropout_cuda_kernels() { return dropout_list; }

}  // namespace stretto

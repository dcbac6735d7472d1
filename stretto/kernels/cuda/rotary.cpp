// Rotary positions: cosines and sines of every position lie in a table that is made when the call is prepared.
#include "stretto/ops/rotary.h"

#include <cmath>

#include "stretto/kernels/cuda/kernel.h"

namespace stretto {
namespace {

// Per position half cosines, then half sines, in the type that is computed in.
template <class T>
std::vector<std::byte> turns(const RotaryAttrs& a, i64 first, i64 count) {
  const i64 half = std::ssize(a.frequencies);
  std::vector<T> all(std::size_t(count * 2 * half));
  for (i64 p = 0; p < count; ++p)
    for (i64 i = 0; i < half; ++i) {
      const double angle = double(first + p) * a.frequencies[std::size_t(i)];
      T* const at = all.data() + p * 2 * half + i;
      at[0] = T(std::cos(angle) * a.scale), at[half] = T((a.inverse ? -std::sin(angle) : std::sin(angle)) * a.scale);
    }
  const auto* const bytes = reinterpret_cast<const std::byte*>(all.data());
  return {bytes, bytes + all.size() * sizeof(T)};
}

std::vector<CudaSource> write_rotary(const Call& call) {
  const RotaryAttrs& a = call.attrs<RotaryAttrs>();
  const View& x = call.in[0];
  const bool told = a.positions > 0;
  const i64 first = told ? 0 : x.offsets[std::size_t(position(x.dims, a.seq))];
  const i64 count = told ? a.positions : x.size(a.seq), half = std::ssize(a.frequencies), head = x.size(a.head);
  CudaText t(call);
  t.space("other", without(x.dims, {a.seq, a.head})).space("at", {a.seq}).space("d", {a.head}, CudaText::padded);
  t.integer("half", half).integer("count", count).integer("pairs", half + head - 2 * half);
  t.integer("apart", a.interleaved ? 1 : half).integer("next", a.interleaved ? 2 : 1);
  t.text(told ? "#define POSITION(other, at) i1[at_i1(other, at, 0)]\n" : "#define POSITION(other, at) (int)(at)\n");
  return {t.kernel(R"cuda(
  const i64 all = i64(other_n) * at_n * pairs;
  for (i64 x = thread; x < all; x += threads) {
    const unsigned i = x % pairs, at = x / pairs % at_n, other = x / pairs / at_n;
    if (i < half) {
      int place = POSITION(other, at);
      if (!within(place, count, now, fault)) place = 0;
      const W* const turn = (const W*)table + i64(place) * 2 * half;
      const unsigned one = i * next, two = one + apart;
      const W left = get(i0 + at_i0(other, at, one)), right = get(i0 + at_i0(other, at, two)), c = turn[i], s = turn[half + i];
      store(o0 + at_o0(other, at, one), left * c - right * s);
      store(o0 + at_o0(other, at, two), right * c + left * s);
    } else {
      const unsigned rest = i + half;
      o0[at_o0(other, at, rest)] = i0[at_i0(other, at, rest)];
    }
  }
)cuda",
                   {.grid = blocks_for(t.count("other") * t.count("at") * (head - half)),
                    .table = wide(x.dtype) == f64 ? turns<double>(a, first, count) : turns<float>(a, first, count)})};
}

constexpr CudaKernel rotary_list[] = {{.name = "pairs", .write = &write_rotary}};

}  // namespace

std::span<const CudaKernel> rotary_cuda_kernels() { return rotary_list; }

}  // namespace stretto

#include "stretto/ops/stochastic_round.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "stretto/base/bf16.h"
#include "stretto/base/hash.h"
#include "stretto/kernels/cpu/nest.h"
#include "stretto/kernels/cpu/philox_blocks.h"
#include "stretto/kernels/kernel.h"

namespace stretto {
namespace {

// Where the elements of x lie in the whole: element i of x is element first + i of a box, row-major.
struct BoxDim {
  i64 size = 1;              // of the box
  i64 start = 0;             // of the box, in the whole
  i64 weight = 1;            // of a step along it, in the whole
  std::optional<int> block;  // the operand that tells which block of such a size the box is
};
struct RoundPlan {
  Nest elements;  // arrays: operand, result, position in x
  std::vector<BoxDim> dims;
  i64 first = 0, count = 1, run = 1;  // run: of so many elements of the box that follow each other in the whole as well
  std::uint32_t which = 0;
  bool contiguous = false;
};

struct BoxSizes {
  std::vector<i64> sizes, offsets, limits;
};
BoxSizes box_of(const Call& call) {
  const DimSet& box = call.attrs<StochasticRoundAttrs>().box;
  if (box.empty()) return {call.in[0].sizes, call.in[0].offsets, call.in[0].limits};
  BoxSizes b;
  for (DimId d : box) {
    b.sizes.push_back(call.graph.size(d));
    b.offsets.push_back(0);
    b.limits.push_back(call.graph.dim(d).valid());
  }
  return b;
}

RoundPlan round_plan_of(const Call& call) {
  const View &x = call.in[0], &out = call.out[0];
  const StochasticRoundAttrs& a = call.attrs<StochasticRoundAttrs>();
  const BoxSizes box = box_of(call);
  RoundPlan plan{.first = a.box.empty() ? 0 : x.offsets[0],
                 .count = x.elements(),
                 .which = std::uint32_t(a.which),
                 .contiguous = x.contiguous() && out.contiguous()};
  for (std::size_t d = 0; d < box.sizes.size(); ++d)
    plan.dims.push_back({.size = box.sizes[d], .start = box.offsets[d]});
  for (int operand = 1; i64 d : a.split) plan.dims[d].block = operand++;
  for (std::size_t d = plan.dims.size(), together = 1; d-- > 0;) {
    plan.dims[d].weight = d + 1 < plan.dims.size() ? plan.dims[d + 1].weight * box.limits[d + 1] : 1;
    if (together) plan.run *= plan.dims[d].size;
    together = together && !plan.dims[d].block && box.sizes[d] == box.limits[d];
  }
  i64 step = plan.count;
  for (std::size_t d = 0; d < x.dims.size(); ++d)
    add_loop(plan.elements, x.sizes[d], {x.strides[d], out.stride(x.dims[d]), step /= x.sizes[d]});
  return plan;
}

// The numbers of one step. Half i % 8 of block i / 8 is for element i of the whole.
struct Halves {
  PhiloxKey key;
  std::uint32_t which, step;

  Halves(const RoundPlan& plan, const Now& now) : which(plan.which), step(std::uint32_t(now.step)) {
    const u64 k = hash_of(now.seed, now.key);
    key = {low32(k), high32(k)};
  }
  std::uint32_t at(u64 i) const {
    const u64 block = i / 8;
    return philox({low32(block), high32(block), which, step}, key)[i % 8 / 2] >> (i % 2 * 16) & 0xFFFF;
  }
};

// What is cut off has a chance, as large as it is of a whole step, to be made up for. NaN stays NaN, and a number that
// bf16 has stays what it is.
std::uint16_t rounded(float x, std::uint32_t half) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  return std::uint16_t((bits & 0x7FFFFFFF) >= 0x7F800000 ? bits >> 16 | ((bits & 0xFFFF) != 0) : (bits + half) >> 16);
}

// The index in the whole of an element of the box.
i64 logical_index(const RoundPlan& plan, const Args& args, i64 element) {
  i64 index = 0;
  for (std::size_t d = plan.dims.size(); d-- > 0;) {
    const BoxDim& dim = plan.dims[d];
    const i64 start = dim.block ? *args.input<std::int32_t>(*dim.block) * dim.size : dim.start;
    index += (start + (d > 0 ? element % dim.size : element)) * dim.weight;
    element /= dim.size;
  }
  return index;
}

template <class T>
void round_plain(const RoundPlan& plan, const Args& args) {
  const Halves halves(plan, args.now);
  const T* x = args.input<T>(0);
  std::uint16_t* out = args.output<std::uint16_t>();
  run_nest(plan.elements, [&](Steps at) {
    out[at[1]] = rounded(float(x[at[0]]), halves.at(u64(logical_index(plan, args, plan.first + at[2]))));
  });
}

// Elements that follow each other, in memory and in the whole.
template <class T>
void round_run(const Halves& halves, u64 index, const T* x, i64 n, std::uint16_t* out) {
  constexpr i64 many = 256;
  alignas(64) std::uint32_t words[many / 2];
  alignas(64) std::array<std::uint16_t, many> half;
  const i64 skip = i64(index % 8);
  for (i64 begin = -skip; begin < n; begin += many) {
    philox_blocks<many / 8>(halves.key, (index + u64(begin)) / 8, halves.which, halves.step, words);
    std::memcpy(half.data(), words, sizeof words);  // the lower half of a word is the first
    const i64 from = std::max<i64>(begin, 0), to = std::min(begin + many, n);
    const std::uint16_t* own = half.data() - begin;
    for (i64 i = from; i < to; ++i) out[i] = rounded(float(x[i]), own[i]);
  }
}

template <class T>
void round_runs(const RoundPlan& plan, const Args& args) {
  const Halves halves(plan, args.now);
  for (i64 done = 0; done < plan.count;) {
    const i64 element = plan.first + done;
    const i64 n = std::min(plan.run - element % plan.run, plan.count - done);
    round_run(halves, u64(logical_index(plan, args, element)), args.input<T>(0) + done, n,
              args.output<std::uint16_t>() + done);
    done += n;
  }
}

template <auto in_f32, auto in_f64, auto in_bf16>
Runner prepare_round(const Call& call) {
  const DType t = call.in[0].dtype;
  const auto run = t == f32 ? in_f32 : t == f64 ? in_f64 : in_bf16;
  return [plan = round_plan_of(call), run](const Args& args) { run(plan, args); };
}

constexpr Kernel round_kernels[] = {
    {.name = "runs",
     .accepts = [](const Call& call) { return round_plan_of(call).contiguous; },
     .prepare = &prepare_round<&round_runs<float>, &round_runs<double>, &round_runs<BF16>>},
    {.name = "plain", .prepare = &prepare_round<&round_plain<float>, &round_plain<double>, &round_plain<BF16>>},
};

}  // namespace

std::span<const Kernel> stochastic_round_kernels() { return round_kernels; }

}  // namespace stretto

#include "stretto/ops/dropout.h"

#include <algorithm>

#include "stretto/base/bf16.h"
#include "stretto/kernels/cpu/nest.h"
#include "stretto/kernels/cpu/philox_blocks.h"
#include "stretto/kernels/kernel.h"

namespace stretto {
namespace {

struct Plan {
  Nest sequence;  // arrays: operand, result, index in the sequence
  i64 rows = 1, row_in = 0, row_out = 0;
  i64 first_row = 0, first_index = 0;  // logical position of this view
  std::uint32_t threshold = 0;         // a word below it drops the element
  double scale = 1;
};

Plan plan_of(const Call& call) {
  const View &x = call.in[0], &out = call.out[0];
  const DropoutAttrs& a = call.attrs<DropoutAttrs>();
  Plan plan{.threshold = std::uint32_t(a.rate * 0x1p32), .scale = 1 / (1 - a.rate)};
  std::vector<i64> weight(x.dims.size(), 1);  // of a step along the dim, in the logical sequence
  for (std::size_t i = x.dims.size(), w = 1; i-- > 0;)
    if (!contains(a.batch, x.dims[i])) weight[i] = i64(w), w *= std::size_t(x.limits[i]);
  for (std::size_t i = 0; i < x.dims.size(); ++i) {
    const DimId d = x.dims[i];
    if (contains(a.batch, d)) {
      plan.rows = x.sizes[i], plan.row_in = x.strides[i], plan.row_out = out.stride(d);
      plan.first_row = x.offsets[i];
    } else {
      plan.first_index += x.offsets[i] * weight[i];
      add_loop(plan.sequence, x.sizes[i], {x.strides[i], out.stride(d), weight[i]});
    }
  }
  return plan;
}

// The words of one sequence in one step: word i is word i % 4 of block i / 4.
struct Words {
  PhiloxKey key;
  std::uint32_t row, step;

  Words(const Plan& plan, const Now& now, i64 row_here)
      : row(std::uint32_t(now.first_row + plan.first_row + row_here)), step(std::uint32_t(now.step)) {
    const u64 k = hash_of(now.seed, now.key);
    key = {std::uint32_t(k), std::uint32_t(k >> 32)};
  }
  std::uint32_t at(u64 i) const {
    const u64 block = i / 4;
    return philox({std::uint32_t(block), std::uint32_t(block >> 32), row, step}, key)[i % 4];
  }
};

template <class T>
T dropped(T x, std::uint32_t word, std::uint32_t threshold, Wide<T> scale) {
  return T(word < threshold ? Wide<T>(0) : x * scale);
}

template <class T>
void plain(const Plan& plan, const Args& args) {
  for (i64 r = 0; r < plan.rows; ++r) {
    const Words words(plan, args.now, r);
    const T* x = args.input<T>(0) + r * plan.row_in;
    T* out = args.output<T>() + r * plan.row_out;
    run_nest(plan.sequence, [&](Steps at) {
      out[at[1]] = dropped(x[at[0]], words.at(u64(plan.first_index + at[2])), plan.threshold, Wide<T>(plan.scale));
    });
  }
}

// Runs that are contiguous in memory and in the sequence.
template <class T>
void runs(const Plan& plan, const Args& args) {
  Nest outer = plan.sequence;
  const i64 n = take_innermost(outer).size;
  const Wide<T> scale = Wide<T>(plan.scale);
  alignas(64) std::uint32_t buffer[256];
  for (i64 r = 0; r < plan.rows; ++r) {
    const Words words(plan, args.now, r);
    run_nest(outer, [&](Steps at) {
      const T* x = args.input<T>(0) + r * plan.row_in + at[0];
      T* out = args.output<T>() + r * plan.row_out + at[1];
      const i64 index = plan.first_index + at[2], skip = index % 4;
      for (i64 begin = -skip; begin < n; begin += 256) {
        philox_blocks<64>(words.key, u64(index + begin) / 4, words.row, words.step, buffer);
        const i64 from = std::max<i64>(begin, 0), to = std::min(begin + 256, n);
        for (i64 i = from; i < to; ++i) out[i] = dropped(x[i], buffer[i - begin], plan.threshold, scale);
      }
    });
  }
}

bool contiguous_runs(const Call& call) {
  Plan plan = plan_of(call);
  return take_innermost(plan.sequence).step == Steps{1, 1, 1};
}

template <auto in_f32, auto in_f64, auto in_bf16>
Runner prepare(const Call& call) {
  const DType t = call.in[0].dtype;
  const auto run = t == f32 ? in_f32 : t == f64 ? in_f64 : in_bf16;
  return [plan = plan_of(call), run](const Args& args) { run(plan, args); };
}

constexpr Kernel kernels[] = {
    {.name = "runs", .accepts = &contiguous_runs, .prepare = &prepare<&runs<float>, &runs<double>, &runs<BF16>>},
    {.name = "plain", .prepare = &prepare<&plain<float>, &plain<double>, &plain<BF16>>},
};

}  // namespace

std::span<const Kernel> dropout_kernels() { return kernels; }

}  // namespace stretto

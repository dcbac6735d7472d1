// A thread per element of the result adds up what meets there, in the order of the operand's dims.
#include "stretto/ops/fold.h"

#include "stretto/kernels/cuda/kernel.h"

namespace stretto {
namespace {

std::vector<CudaSource> write_fold(const Call& call) {
  const FoldAttrs& a = call.attrs<FoldAttrs>();
  CudaText t(call);
  t.space("x", without(call.out[0].dims, {a.whole})).space("p", {a.whole});
  std::string loops, indices;
  for (std::size_t i = 0; i < a.parts.size(); ++i) {
    const std::string d = fmt::format("d{}", i);
    t.space(d, {a.parts[i]});
    loops += fmt::format("for (unsigned {0} = 0; {0} < {0}_n; ++{0})\n", d);
    indices += ", " + d;
  }
  std::string place = fmt::format("i64({})", a.start), zeros;
  for (std::size_t i = 0; i < a.parts.size(); ++i)
    place += fmt::format(" + i64({}) * d{}", a.steps[i], i), zeros += ", 0";
  return {t.kernel(fmt::format("for (i64 at = thread; at < i64(x_n) * p_n; at += threads) {{\n"
                               "const unsigned x = at / p_n, p = at % p_n;\nW sum = 0;\n{}"
                               "if ({} == p) sum += W(get(i0 + at_i0(x, p{})));\n"
                               "store(o0 + at_o0(x, p{}), sum, adds);\n}}\n",
                               loops, place, indices, zeros),
                   {.grid = blocks_for(t.count("x") * t.count("p"))})};
}

constexpr CudaKernel kernels[] = {{.name = "meeting", .write = &write_fold}};

}  // namespace

std::span<const CudaKernel> fold_cuda_kernels() { return kernels; }

}  // namespace stretto

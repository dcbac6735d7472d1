// Pointwise ops and groups of them: an element of every result from those of the operands, in one pass.
#include "stretto/kernels/cuda/elements.h"
#include "stretto/kernels/cuda/kernel.h"
#include "stretto/ops/fused.h"

namespace stretto {
namespace {

// An op alone is a group of one.
FusedAttrs group_of(const Call& call) {
  if (call.node.attrs.is<FusedAttrs>()) return call.attrs<FusedAttrs>();
  FusedAttrs one{.steps = {std::string(call.node.op->name)},
                 .counts = {std::ssize(call.in)},
                 .args = {},
                 .values = {0},
                 .dtypes = {call.out[0].dtype},
                 .results = {0},
                 .space = call.out[0].dims};
  for (i64 i = 0; i < std::ssize(call.in); ++i) one.args.push_back(i);
  return one;
}

bool accepts_group(const Call& call) {
  for (const std::string& step : group_of(call).steps)
    if (step != "constant" && cuda_element(step).empty()) return false;
  return true;
}

// Values are v0, v1, ...: the operands, then the steps. One of bf16 is rounded before another step reads it.
std::string steps_of(const FusedAttrs& group, const Call& call) {
  const std::size_t operands = call.in.size();
  const auto dtype = [&](std::size_t v) { return v < operands ? call.in[v].dtype : group.dtypes[v - operands]; };
  std::string t;
  for (std::size_t k = 0, next = 0; k < group.steps.size(); ++k) {
    const char* const type = cuda_type(group.dtypes[k]);
    if (group.steps[k] == "constant") {
      t += fmt::format("const {} v{} = {:.17g};\n", type, operands + k, group.values[k]);
      continue;
    }
    t += fmt::format("{} v{};\n{{\ntypedef {} R;\n", type, operands + k, type);
    for (i64 j = 0; j < group.counts[k]; ++j) {
      const std::size_t v = group.args[next++];
      const char* const operand = cuda_type(dtype(v));
      if (j == 0) t += fmt::format("typedef {} T;\n", operand);
      t += fmt::format("const {} {} = v{};\n", operand, "abc"[j], v);
    }
    t += fmt::format("v{} = {};\n}}\n", operands + k, cuda_element(group.steps[k]));
    if (group.dtypes[k] == bf16) t += fmt::format("v{0} = float(bf16(v{0}));\n", operands + k);
  }
  return t;
}

std::vector<CudaSource> write_group(const Call& call) {
  const FusedAttrs group = group_of(call);
  CudaText t(call);
  t.text(cuda_element_functions()).space("x", group.space, CudaText::padded);
  std::string body = "for (unsigned x = thread; x < x_n; x += threads) {\n";
  for (std::size_t i = 0; i < call.in.size(); ++i)
    body += fmt::format("const {} v{} = get(i{} + at_i{}(x));\n", cuda_type(call.in[i].dtype), i, i, i);
  body += steps_of(group, call);
  for (std::size_t k = 0; k < call.out.size(); ++k)
    body += fmt::format("if (o{0}) store(o{0} + at_o{0}(x), v{1}{2});\n", k,
                        call.in.size() + std::size_t(group.results[k]), k == 0 ? ", adds" : "");
  return {t.kernel(body + "}\n", {.grid = blocks_for(t.count("x"))})};
}

constexpr CudaKernel group_kernels[] = {{.name = "pointwise", .accepts = &accepts_group, .write = &write_group}};

}  // namespace

std::span<const CudaKernel> pointwise_cuda_kernels() { return group_kernels; }
std::span<const CudaKernel> fused_cuda_kernels() { return group_kernels; }

}  // namespace stretto

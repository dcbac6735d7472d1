#include "support/evaluate.h"

#include "stretto/base/hash.h"
#include "stretto/ops/constant.h"

namespace stretto::test {

Call contiguous_call(const Graph& g, const Node& n) {
  Call call{.graph = g, .node = n, .in = {}, .out = {}};
  for (Value v : n.operands) call.in.push_back(contiguous_view(g, g.type(v)));
  for (const Type& t : n.results) call.out.push_back(contiguous_view(g, t));
  return call;
}

void run_kernel(const Kernel& kernel, const Call& call, const std::vector<std::byte*>& in,
                const std::vector<std::byte*>& out, Now now) {
  const Op& op = *call.node.op;
  if (op.key) now.key = hash_of(std::string_view(op.key(call.node.attrs).name));
  const std::size_t bytes = call.op().scratch();
  Buffer scratch(i32, i64(bytes / 4 + 1));
  for (i64 i = 0; i < scratch.count(); ++i) scratch.set(i, -1);  // NaN, as floats
  kernel.prepare(call)({.in = in.data(), .out = out.data(), .scratch = scratch.data(), .now = now});
}

void evaluate(const Graph& g, Values& values, const Evaluation& how) {
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    const Node& n = g.nodes[i];
    const NodeId id{std::uint32_t(i)};
    if (values.contains({id, 0})) continue;
    const auto value = [&](std::size_t operand) -> Buffer& { return values.at(n.operands[operand]); };
    if (n.attrs.is<ConstantAttrs>()) {
      Buffer b(g, n.results[0]);
      b.set(0, n.attrs.as<ConstantAttrs>().value);
      values[{id, 0}] = std::move(b);
      continue;
    }
    if (n.op->view) {
      const View whole = contiguous_view(g, g.type(n.operands[0]));
      for (std::size_t r = 0; r < n.results.size(); ++r) {
        const ViewMap map = n.op->view({g, n}, int(r));
        const View part = sub_view(whole, map, n.results[r].dims, g);
        values[{id, std::uint8_t(r)}] = gathered(part, value(0).element(start_of(whole, map)));
      }
      continue;
    }
    const Call call = contiguous_call(g, n);
    if (cpu_kernels(*n.op).empty()) throw Error(n.op->name, "is a source that was given no value");
    std::vector<std::byte*> in, out;
    for (std::size_t k = 0; k < n.operands.size(); ++k) in.push_back(value(k).data());
    for (std::size_t r = 0; r < n.results.size(); ++r)
      out.push_back((values[{id, std::uint8_t(r)}] = Buffer(g, n.results[r])).data());
    run_kernel(how.reference ? cpu_kernels(*n.op).back() : choose_kernel(call), call, in, out, how.now);
  }
}

}  // namespace stretto::test

// AdamW's update as one loop against the tiles of the same group.
#include <gtest/gtest.h>

#include "stretto/ops/fused.h"
#include "stretto/ops/ops.h"
#include "support/kernel_run.h"
#include "support/small_models.h"

namespace stretto {
namespace {

const Kernel& kernel_named(std::string_view name) {
  for (const Kernel& k : cpu_kernels(fused_op))
    if (k.name == name) return k;
  throw Error("test", "there is no kernel '{}'", name);
}

// Both kernels on the same numbers, all of them positive; `finite`: what the step says of itself.
void expect_equal_bits(const Graph& g, NodeId node, bool finite) {
  KernelRun run(g, node, 1, KernelRun::contiguous);
  ASSERT_EQ(run.chosen().name, "adamw");
  for (std::size_t i = 0; i < run.call.in.size(); ++i)
    if (run.call.in[i].dtype == i32)
      run.set(int(i), {finite ? 1.0 : 0.0});
    else
      run.fill(int(i), 1e-4, 0.9);
  std::vector<std::vector<double>> results[2];
  for (int k = 0; k < 2; ++k) {
    run.run(kernel_named(k == 0 ? "adamw" : "tiles"));
    for (std::size_t r = 0; r < run.call.out.size(); ++r) results[k].push_back(run.result(int(r)));
  }
  EXPECT_EQ(results[0], results[1]);
}

// How many groups of a program are taken for an update, each held against its tiles.
int updates_in(const Compiled& c) {
  int found = 0;
  for (const auto& body : c.program->calls)
    for (const KernelCall& call : body->calls) {
      if (body->graph.node(call.node).op != &fused_op) continue;
      if (KernelRun(body->graph, call.node, 1, KernelRun::contiguous).chosen().name != "adamw") continue;
      for (const bool finite : {true, false}) expect_equal_bits(body->graph, call.node, finite);
      ++found;
    }
  return found;
}

TEST(Adamw, OneLoopHasTheBitsOfTiles) {
  const Model model = make_model(tiny("llama"), 4, 8);
  for (const DType type : {f32, bf16})
    for (const double clip : {0.0, 1.0}) {
      SCOPED_TRACE(fmt::format("{}, clip {}", name_of(type), clip));
      const Compiled c = compile(model, adamw({.lr = 1e-3}), {.dtype = type, .clip = clip});
      EXPECT_EQ(updates_in(c), std::ssize(c.params));
    }
  EXPECT_EQ(updates_in(compile(model, sgd({.lr = 1e-3}), {})), 0);
  EXPECT_EQ(updates_in(compile(model, lion({.lr = 1e-3}), {})), 0);
  EXPECT_EQ(updates_in(compile(model, adamw({.lr = 1e-3}), {.dtype = f64})), 0);
  EXPECT_GT(updates_in(compile(model, adamw({.lr = 1e-3}), {}, {.names = {.data = 2, .zero = 3}})), 0);
}

}  // namespace
}  // namespace stretto

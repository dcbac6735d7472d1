// Products in parts: which are cut, and that no bit changes.
#include "stretto/compile/inner/chunks.h"

#include <gmock/gmock.h>

#include "stretto/stretto.h"
#include "support/property.h"
#include "support/small_models.h"

namespace stretto {
namespace {
using testing::HasSubstr;
using testing::IsEmpty;

ModelConfig model(const char* family) {
  return {.family = family, .layers = 2, .width = 256, .heads = 4, .context = 128, .vocab = 256};
}
Compiled compiled(const ModelConfig& m, const Parallel& p, const Training& t = {.microbatches = 4}, int rows = 4) {
  return compile(make_model(m, rows), adamw(), t, p);
}
const Link slow{.latency = 0, .bandwidth = 1e8};
Parallel tensor(Overlap overlap) {
  return {.names = {.tensor = 2, .sequence = true}, .link = slow, .overlap = overlap};
}

int parts_of(const Compiled& c, std::string_view kind) {
  int most = 0;
  for (const Collective& x : c.sharded->collectives)
    if (x.kind == kind) most = std::max(most, x.parts);
  return most;
}
int calls_of_kind(const Program& p, std::string_view op) {
  int n = 0;
  for (const auto& body : p.calls)
    for (const KernelCall& c : body->calls) n += body->graph.node(c.node).op->name == op;
  return n;
}

TEST(Chunks, ProductsBesideGathersAndScattersAreCut) {
  const Compiled whole = compiled(model("llama"), tensor(Overlap::calls));
  const Compiled cut = compiled(model("llama"), tensor(Overlap::chunks));
  EXPECT_EQ(parts_of(whole, "all_gather"), 1);
  EXPECT_GT(parts_of(cut, "all_gather"), 1);
  EXPECT_GT(parts_of(cut, "reduce_scatter"), 1);
  EXPECT_GT(calls_of_kind(*cut.program, "contract"), calls_of_kind(*whole.program, "contract"));
  for (const TaskId t : cut.program->calls.ids()) {
    if (cut.program->step->tasks[t].part == Part::W) continue;  // puts what I gathers in stripes together, by a copy
    const Calls& body = *cut.program->calls[t];
    for (const KernelCall& c : body.calls)
      EXPECT_NE(body.graph.node(c.node).op->name, "weave") << "stripes are made where they belong";
  }
  EXPECT_EQ(calls_of_kind(*cut.program, "all_reduce"), calls_of_kind(*whole.program, "all_reduce"));
  EXPECT_THAT(verify(*cut.program), IsEmpty());
}

TEST(Chunks, NothingToHideIsNotCut) {
  Parallel p = tensor(Overlap::chunks);
  p.link = {.latency = 0, .bandwidth = 1e18};
  const Compiled fast = compiled(model("llama"), p);
  EXPECT_EQ(parts_of(fast, "all_gather"), 1);
  ASSERT_EQ(fast.sharded->warnings.size(), 1u);
  EXPECT_THAT(fast.sharded->warnings[0].str(),
              HasSubstr("overlap = \"chunks\": no product is worth cutting into parts"));
  p = tensor(Overlap::chunks);
  p.names = {.data = 2};
  EXPECT_EQ(compiled(model("llama"), p, {.microbatches = 4}, 8).sharded->warnings.size(), 1u);
  p.names = {};
  EXPECT_EQ(compiled(model("llama"), p).sharded, nullptr) << "one rank";
}

TEST(Chunks, ALatencyMakesPartsFewer) {
  Parallel p = tensor(Overlap::chunks);
  p.names.tensor = 2;
  ModelConfig large = model("llama");
  large.context = 512;
  const int many = parts_of(compiled(large, p), "reduce_scatter");
  p.link.latency = 3e-4;
  const int few = parts_of(compiled(large, p), "reduce_scatter");
  EXPECT_GT(many, few);
  EXPECT_GT(few, 1);
}

TEST(Chunks, SmallProductsStayWhole) {
  const Compiled c = compile(make_model(tiny("llama"), 4), adamw(), {.microbatches = 2}, tensor(Overlap::chunks));
  EXPECT_EQ(parts_of(c, "all_gather"), 1) << "their bits could be others";
}

// A kept product stays kept, and what was gathered is gathered again.
TEST(Chunks, SelectiveRecomputeKeepsTheSame) {
  const auto kept = [](Overlap overlap) {
    Parallel p = tensor(overlap);
    p.recompute = {Recompute::selective};
    const Compiled c = compiled(model("llama"), p);
    std::size_t bytes = 0;
    for (const auto& v : c.program->step->values) bytes += v.bytes;
    return bytes;
  };
  EXPECT_EQ(kept(Overlap::chunks), kept(Overlap::calls));
}

Parallel any_parallel() {
  Parallel p{.names = {.tensor = 2, .sequence = true}, .link = slow};
  if (*rc::gen::arbitrary<bool>()) p.mesh = {{"pipe", 2}};
  if (!p.mesh.empty())
    p.schedule = *rc::gen::element<std::string>("1f1b", "zb-h1", "zb-v", "dualpipe-v", "kimi-k2", "interleaved-1f1b");
  if (p.mesh.empty()) p.names.data = *rc::gen::element(1, 2);
  if (p.names.data > 1) p.names.zero = *rc::gen::inRange(0, 4);
  p.recompute = {*rc::gen::element(Recompute::none, Recompute::none, Recompute::selective, Recompute::layer)};
  p.regather = *rc::gen::arbitrary<bool>();
  p.remote = *rc::gen::arbitrary<bool>();
  p.link.bandwidth = *rc::gen::element(3e7, 1e8, 1e9);
  p.link.latency = *rc::gen::element(0.0, 1e-5);
  return p;
}

// Whatever is cut: the same bits as whole; every program has passed the proofs.
TEST(Chunks, AreBitEqualToWholeProducts) {
  int cut = 0, cases = 0;
  EXPECT_TRUE(holds("chunks change no bit", 8, [&] {
    ModelConfig m = model(*rc::gen::element("llama", "gpt2"));
    m.kv_heads = m.family == "llama" ? *rc::gen::element(4, 2) : 0;
    Parallel p = any_parallel();
    const Training t{.microbatches = 4, .dtype = *rc::gen::element(f32, f32, bf16), .clip = 1};
    p.overlap = Overlap::none;
    const Compiled whole = compiled(m, p, t, 8);
    p.overlap = Overlap::chunks;
    const Compiled parts = compiled(m, p, t, 8);
    ++cases;
    cut += std::max(parts_of(parts, "all_gather"), parts_of(parts, "reduce_scatter")) > 1;
    Trainer a(whole), b(parts, {.jitter = 1e-4, .jitter_seed = *rc::gen::inRange<u64>(0, 100)});
    const Batch batch = random_batch(parts, 200);
    for (int step = 0; step < 2; ++step) RC_ASSERT(a.step(batch).loss == b.step(batch).loss);
    RC_ASSERT(a.parameters_hash() == b.parameters_hash());
  }));
  EXPECT_GT(cut, cases * 3 / 4);
}

}  // namespace
}  // namespace stretto

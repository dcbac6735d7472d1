#include "stretto/ops/embedding.h"

#include <gmock/gmock.h>

#include "stretto/ops/embedding_grad.h"
#include "stretto/ops/input.h"
#include "support/kernel_run.h"
#include "support/message.h"

namespace stretto {
namespace {

using testing::Contains;
using testing::HasSubstr;

struct Lookup {
  Builder b;
  Dim v{"vocab", 5}, m{"m", 2}, s{"s", 3};
  Tensor y = embedding(input(b, "table", f32, {v, m}), input(b, "ids", i32, {s}), v);
  KernelRun run{b.graph, y.value.node, 1, KernelRun::strided};
  std::span<const Kernel> kernels = cpu_kernels(*b.graph.node(y.value).op);
};

TEST(Embedding, PicksRows) {
  Lookup l;
  l.run.set(0, {0, 1, 10, 11, 20, 21, 30, 31, 40, 41});
  l.run.set(1, {4, 0, 4});
  for (const Kernel& k : l.kernels) {
    if (!accepts(k, l.run.call)) continue;
    l.run.run(k);
    EXPECT_EQ(l.run.result(), (std::vector<double>{40, 41, 0, 1, 40, 41}));
  }
}

TEST(Embedding, RefusesIdsOutsideOfTheVocabulary) {
  Lookup l;
  l.run.fill(0, -1, 1);
  for (const Kernel& k : l.kernels) {
    if (!accepts(k, l.run.call)) continue;
    l.run.set(1, {0, 5, 1});
    EXPECT_THAT(refusal_of([&] { l.run.run(k); }),
                HasSubstr("[embedding] id 5 is outside of dim 'vocab', which has 5"));
    l.run.set(1, {-1, 1, 1});
    EXPECT_THAT(refusal_of([&] { l.run.run(k); }), HasSubstr("id -1 is outside"));
  }
}

TEST(Embedding, ShardGivesZeroForRowsElsewhere) {
  Lookup l;
  l.run.set(0, {0, 1, 10, 11, 20, 21, 30, 31, 40, 41});
  l.run.set(1, {4, 9, 7});
  l.run.set_offset(0, l.b.intern(l.v), 5);  // holds rows 5 ... 9
  for (const Kernel& k : l.kernels) {
    if (!accepts(k, l.run.call)) continue;
    l.run.run(k);
    EXPECT_EQ(l.run.result(), (std::vector<double>{0, 0, 40, 41, 20, 21}));
  }
}

TEST(Embedding, KernelsAgree) {
  std::vector<std::string> ran;
  for (u64 seed = 0; seed < 20; ++seed) {
    Builder b;
    const Dim p{"p", 3}, q{"q", 4}, m{"m", 9}, v = seed % 2 ? Dim{"v", 7} : Dim{"v", 7}.padded(4);
    const DimId vi = b.intern(v), mi = b.intern(m);
    const Tensor nodes[] = {
        embedding(input(b, "t", seed % 3 ? f32 : f64, {v, m}), input(b, "i", i32, {p, q}), v),
        embedding(input(b, "t", f32, {m, v}), input(b, "i", i32, {q, p}), v),
        embedding_grad(input(b, "g", seed % 3 ? f32 : f64, {p, q, m}), input(b, "i", i32, {q, p}), vi, {vi, mi}),
        embedding_grad(input(b, "g", f32, {p, m}), input(b, "i", i32, {p}), vi, {mi, vi})};
    for (const Tensor& t : nodes)
      for (const std::string& name : check_kernels(
               b.graph, t.value.node, seed, [](KernelRun& r) { r.fill(0, -1, 1), r.fill_ids(1, 7); }, 1e-6))
        ran.push_back(name);
  }
  EXPECT_THAT(ran, Contains("rows"));
}

TEST(EmbeddingGrad, AddsRepeatedRows) {
  Builder b;
  const Dim v{"v", 4}, m{"m", 2}, s{"s", 3};
  const DimId vi = b.intern(v), mi = b.intern(m);
  const Tensor y = embedding_grad(input(b, "g", f64, {s, m}), input(b, "i", i32, {s}), vi, {vi, mi});
  KernelRun run(b.graph, y.value.node, 1, KernelRun::contiguous);
  run.set(0, {1, 2, 3, 4, 5, 6});
  run.set(1, {2, 0, 2});
  run.run(run.chosen());
  EXPECT_EQ(run.result(), (std::vector<double>{3, 4, 0, 0, 6, 8, 0, 0}));
}

TEST(Embedding, MistakesAreNamed) {
  Builder b;
  const Dim v{"v", 4}, m{"m", 2}, s{"s", 3};
  const Tensor table = input(b, "t", f32, {v, m}), ids = input(b, "i", i32, {s});
  EXPECT_THAT(refusal_of([&] { embedding(ids, table, s); }), HasSubstr("[embedding] ids t{v=4 m=2} are f32"));
  EXPECT_THAT(refusal_of([&] { embedding(table, ids, Dim{"voc", 4}); }), HasSubstr("voc"));
  EXPECT_THAT(refusal_of([&] { embedding(table, input(b, "j", i32, {m}), v); }), HasSubstr("dim 'm' twice"));
}

}  // namespace
}  // namespace stretto

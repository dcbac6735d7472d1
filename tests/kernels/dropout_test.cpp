#include <gtest/gtest.h>

#include "stretto/ops/dropout.h"
#include "stretto/ops/input.h"
#include "stretto/ops/ops.h"
#include "support/evaluate.h"

namespace stretto {
namespace {
using test::Buffer;

struct Dropped {
  Builder builder;
  Dim batch{"batch", 6}, seq{"seq", 9}, model{"model", 13};
  Tensor x = input(builder, "x", f32, {batch, seq, model});
  Tensor y = dropout(x, 0.25, "d");

  // Ones through the op on the given part of the batch: which elements stay.
  Buffer run(View part, Now now, const Kernel* kernel = nullptr) {
    Call call{.graph = builder.graph, .node = builder.graph.node(y.value), .in = {part}, .out = {part}};
    Buffer in(f32, part.elements()), out(f32, part.elements());
    for (i64 i = 0; i < in.count(); ++i) in.set(i, 1);
    test::run_kernel(kernel ? *kernel : choose_kernel(call), call, {in.data()}, {out.data()}, now);
    return out;
  }
  // A shard: sizes and offsets along batch, seq, model.
  View shard(std::vector<i64> sizes, std::vector<i64> offsets) const {
    View v{
        .dtype = f32, .dims = x.type().dims, .sizes = sizes, .strides = {}, .offsets = offsets, .limits = {6, 9, 13}};
    v.strides = {sizes[1] * sizes[2], sizes[2], 1};
    return v;
  }
  View whole() const { return shard({6, 9, 13}, {0, 0, 0}); }
};

TEST(Dropout, DropsTheShareAskedForAndScalesTheRest) {
  Builder b;
  const Dim rows{"rows", 64}, columns{"columns", 1024};
  const Tensor x = input(b, "x", f32, {rows, columns}), y = dropout(x, 0.3);
  Buffer ones(b.graph, x.type());
  for (i64 i = 0; i < ones.count(); ++i) ones.set(i, 1);
  test::Values values{{x.value, ones}};
  evaluate(b.graph, values, {.now = {.seed = 4, .step = 2}});
  double dropped = 0;
  for (i64 i = 0; i < ones.count(); ++i) {
    const double v = values[y.value].at(i);
    if (v == 0)
      ++dropped;
    else
      ASSERT_FLOAT_EQ(float(v), 1 / 0.7f);
  }
  EXPECT_NEAR(dropped / 65536, 0.3, 4 * std::sqrt(0.3 * 0.7 / 65536));  // four standard deviations
}

TEST(Dropout, IsAFunctionOfSeedNameStepRowAndIndex) {
  Dropped d;
  const Buffer first = d.run(d.whole(), {.seed = 1, .step = 1});
  const auto same = [&](const Buffer& other) {
    i64 equal = 0;
    for (i64 i = 0; i < first.count(); ++i) equal += first.at(i) == other.at(i);
    return equal == first.count();
  };
  EXPECT_TRUE(same(d.run(d.whole(), {.seed = 1, .step = 1})));
  EXPECT_FALSE(same(d.run(d.whole(), {.seed = 2, .step = 1})));
  EXPECT_FALSE(same(d.run(d.whole(), {.seed = 1, .step = 2})));
  EXPECT_FALSE(same(d.run(d.whole(), {.seed = 1, .step = 1, .first_row = 6})));
  Dropped other;
  other.y = dropout(other.x, 0.25, "e");
  EXPECT_FALSE(same(other.run(other.whole(), {.seed = 1, .step = 1})));
  for (const Kernel& k : cpu_kernels(dropout_op)) EXPECT_TRUE(same(d.run(d.whole(), {.seed = 1, .step = 1}, &k)));
}

// Any shard, and any microbatch, drops what the whole batch drops there.
TEST(Dropout, DoesNotDependOnShardsAndMicrobatches) {
  Dropped d;
  const Now now{.seed = 1, .step = 3, .first_row = 12};
  const Buffer whole = d.run(d.whole(), now);
  const auto expect_part = [&](std::vector<i64> sizes, std::vector<i64> offsets, i64 first_row, i64 row_shift) {
    const Buffer part = d.run(d.shard(sizes, offsets), {.seed = 1, .step = 3, .first_row = first_row});
    i64 i = 0;
    test::for_each_index(sizes, [&](const std::vector<i64>& at) {
      const i64 there = ((at[0] + offsets[0] + row_shift) * 9 + at[1] + offsets[1]) * 13 + at[2] + offsets[2];
      EXPECT_EQ(part.at(i++), whole.at(there));
    });
  };
  expect_part({3, 9, 13}, {3, 0, 0}, 12, 0);  // split over batch
  expect_part({6, 3, 13}, {0, 6, 0}, 12, 0);  // over seq
  expect_part({6, 9, 5}, {0, 0, 7}, 12, 0);   // over model
  expect_part({2, 4, 6}, {1, 5, 7}, 12, 0);
  expect_part({2, 9, 13}, {0, 0, 0}, 16, 4);  // microbatches of two rows: the third
}

}  // namespace
}  // namespace stretto

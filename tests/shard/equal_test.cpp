// Loss, gradient norm, every gradient and the updated parameters are those of the unsharded step, under many layouts.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "shard/spmd.h"

namespace stretto {
namespace {
using test::Buffer;
using test::Spmd;
using test::Traced;
using test::traced;

struct Setting {
  ModelConfig config;
  i64 rows = 8, seq = 8;
  int microbatches = 2;
  DType dtype = f64;
};

ModelConfig small(std::string family) {
  ModelConfig c{
      .family = std::move(family), .layers = 1, .width = 16, .heads = 8, .context = 8, .vocab = 30, .pad_vocab = 8};
  if (c.family == "llama") c.kv_heads = 4, c.ff = 24, c.head_dim = 4;
  if (c.family != "llama") c.ff = 32;
  return c;
}

struct Problem {
  Setting setting;
  Traced traced;
  std::vector<Buffer> params, inputs;

  explicit Problem(const Setting& s)
      : setting(s), traced(test::traced(make_model(s.config, s.rows, s.seq), s.dtype, s.microbatches)) {
    std::mt19937 random(17);
    const Graph& g = traced.step.graph;
    for (Value v : traced.step.params) {
      const Type& t = g.type(v);
      Buffer b(g, t);
      const View view = contiguous_view(g, t);
      i64 i = 0;
      test::for_each_index(view.sizes, [&](const std::vector<i64>& index) {
        const double x = std::uniform_real_distribution<double>(-0.3, 0.3)(random) + (t.dims.size() == 1 ? 0.5 : 0);
        b.set(i++, test::is_padding(view, index) ? 0 : x);
      });
      params.push_back(std::move(b));
    }
    for (std::size_t k = 0; k < traced.step.inputs.size(); ++k) {
      Buffer b(i32, g.elements(g.type(traced.step.inputs[k])) * s.microbatches);
      for (i64 i = 0; i < b.count(); ++i) {
        const bool ignored = traced.inputs[k] == "targets" && random() % 4 == 0;  // unequal counts
        b.set(i, ignored ? -100 : double(random() % u64(s.config.vocab)));
      }
      inputs.push_back(std::move(b));
    }
  }
  Spmd run(const Sharded& s) const {
    Spmd m(traced, s, setting.microbatches);
    m.params = params;
    m.inputs = inputs;
    m.step();
    return m;
  }
};

double largest(const Buffer& b) {
  double m = 0;
  for (i64 i = 0; i < b.count(); ++i) m = std::max(m, std::abs(b.at(i)));
  return m;
}

void expect_equal(const Problem& p, const Spmd& plain, const Mesh& mesh, const Layout& layout,
                  const ShardOptions& o = {}) {
  SCOPED_TRACE(mesh.str() + ": " + layout.str());
  const Sharded s = shard(p.traced.step, mesh, layout, o);
  const Spmd m = p.run(s);
  const double tolerance = p.setting.dtype == f64 ? 1e-10 : 1e-5;
  EXPECT_NEAR(m.loss, plain.loss, tolerance * std::abs(plain.loss));
  EXPECT_NEAR(m.norm, plain.norm, tolerance * plain.norm);
  for (const auto& losses : m.losses) EXPECT_EQ(losses, m.losses[0]) << "all ranks hold the same bits";
  double scale = 0;
  for (const Buffer& g : plain.gradients) scale = std::max(scale, largest(g));
  for (std::size_t k = 0; k < m.gradients.size(); ++k) {
    // Gradients that are zero in exact arithmetic (a bias of keys) have a floor.
    const double most = std::max(largest(plain.gradients[k]), 1e-3 * scale);
    double worst = 0;
    for (i64 i = 0; i < m.gradients[k].count(); ++i) {
      worst = std::max(worst, std::abs(m.gradients[k].at(i) - plain.gradients[k].at(i)) / most);
      if (std::isnan(m.gradients[k].at(i))) worst = INFINITY;
    }
    EXPECT_LE(worst, tolerance) << "gradient of " << p.traced.params[k];
    for (i64 i = 0; i < m.params[k].count(); ++i)
      ASSERT_NEAR(m.params[k].at(i), plain.params[k].at(i), tolerance) << p.traced.params[k];
  }
}

const Layout tensor{{"batch", "data"}, {"heads", "tensor"}, {"ff", "tensor"}, {"vocab", "tensor"}};

TEST(Equal, Gpt2) {
  const Problem p({.config = small("gpt2")});
  const Spmd plain = p.run(shard(p.traced.step, {}, {}));
  expect_equal(p, plain, {{"data", 2}}, {{"batch", "data"}});
  expect_equal(p, plain, {{"data", 2}, {"tensor", 2}}, tensor);
  Layout sequence = tensor;
  sequence.push_back({"seq_r", "tensor"});
  expect_equal(p, plain, {{"data", 2}, {"tensor", 2}}, sequence);
}

}  // namespace
}  // namespace stretto

// Loss, gradient norm, every gradient and the updated parameters are those of the unsharded step, under many layouts.
#include <gtest/gtest.h>

#include <rapidcheck.h>

#include <cmath>
#include <random>

#include "shard/spmd.h"
#include "stretto/shard/layout_of.h"
#include "support/property.h"

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
  ExpertRows expert_rows = ExpertRows::automatic;
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
      : setting(s), traced(test::traced(make_model(s.config, s.rows, s.seq), s.dtype, s.microbatches, s.expert_rows)) {
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
    for (InputId k : traced.step.inputs.ids()) {
      Buffer b(i32, g.elements(g.type(traced.step.inputs[k])) * s.microbatches);
      for (i64 i = 0; i < b.count(); ++i) {
        const bool ignored = traced.inputs[k.value] == "targets" && random() % 4 == 0;  // unequal counts
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
  SCOPED_TRACE(fmt::format("{}: {}; state {} gradients {} params {} regather {}", mesh.str(), layout.str(),
                           o.storage.state.size(), o.storage.gradients.size(), o.storage.params.size(), o.regather));
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

struct Reference {
  Problem problem;
  Spmd plain;
  explicit Reference(const Setting& s) : problem(s), plain(problem.run(unsharded(problem))) {}
  static const Sharded& unsharded(const Problem& p) {
    static std::vector<std::unique_ptr<Sharded>> kept;  // the machine refers to it
    kept.push_back(std::make_unique<Sharded>(shard(p.traced.step, {}, {})));
    return *kept.back();
  }
  void equals(const Mesh& mesh, const Layout& layout, const ShardOptions& o = {}) const {
    expect_equal(problem, plain, mesh, layout, o);
  }
  void equals(const ParallelNames& names, ShardOptions o = {}) const {
    SCOPED_TRACE(fmt::format("zero {}", names.zero));
    const NamedLayout n = layout_of(names, problem.traced.step.graph.dims);
    o.storage = n.storage;
    expect_equal(problem, plain, n.mesh, n.layout, o);
  }
};

class Families : public testing::TestWithParam<const char*> {};

// The unsharded run of the tasks is that of the whole graph with the kernels that training uses.
TEST_P(Families, UnshardedIsTheGraphItself) {
  const Problem p({.config = small(GetParam()), .microbatches = 1});
  const Spmd m = p.run(Reference::unsharded(p));
  test::Values values;
  const StepGraph& s = p.traced.step;
  for (ParamId k : s.params.ids()) values[s.params[k]] = p.params[k.value];
  for (InputId k : s.inputs.ids()) values[s.inputs[k]] = p.inputs[k.value];
  double count = 0;
  for (i64 i = 0; i < p.inputs[1].count(); ++i) count += p.inputs[1].at(i) != -100;
  values[s.scalars[ScalarId(0)]] = Buffer(f64, 1);
  values[s.scalars[ScalarId(0)]].set(0, 1 / count);
  test::evaluate(s.graph, values);
  EXPECT_NEAR(values.at(s.outputs[OutputId(0)].value).at(0) / count, m.loss, 1e-12 * m.loss);
  IdVector<ParamId, Buffer> sums;
  for (Value v : s.params) sums.push_back(Buffer(s.graph, s.graph.type(v)));
  for (const StepGraph::Grad& g : s.gradients)
    for (i64 i = 0; i < sums[g.param].count(); ++i)
      sums[g.param].set(i, sums[g.param].at(i) + values.at(g.value).at(i));
  for (ParamId k : sums.ids())
    for (i64 i = 0; i < sums[k].count(); ++i)
      ASSERT_NEAR(sums[k].at(i), m.gradients[k.value].at(i), 1e-12) << p.traced.params[k.value];
}

TEST_P(Families, DataTensorSequenceZero) {
  const Reference r({.config = small(GetParam()), .rows = 16});
  for (const auto& [data, tensor] : {std::pair{8, 1}, {4, 2}, {2, 4}, {1, 8}})
    for (const bool sequence : {false, true}) {
      if (sequence && tensor == 1) continue;
      if (r.problem.setting.config.family == "llama" && tensor == 8) continue;  // four heads have keys of their own
      for (int zero = 0; zero <= (data > 1 && data * tensor == 8 && data != 4 ? 3 : 0); ++zero)
        r.equals({.data = data, .tensor = tensor, .sequence = sequence, .zero = zero});
    }
}

TEST_P(Families, Context) {
  if (std::string(GetParam()) == "mlp") GTEST_SKIP() << "no attention";
  const Reference r({.config = small(GetParam())});
  for (const bool exchange : {false, true}) {
    r.equals({.context = 4, .exchange = exchange});
    r.equals({.data = 2, .tensor = 2, .context = 2, .sequence = true, .exchange = exchange, .zero = 1});
  }
}

TEST_P(Families, RowsColumnsDepth) {
  const Reference r({.config = small(GetParam())});
  const bool llama = std::string(GetParam()) == "llama", mlp = std::string(GetParam()) == "mlp";
  Layout layout{{"model", "x"}, {"ff", "y"}, {"vocab", "y"}, {"batch", "z"}};
  if (!mlp) layout.push_back({llama ? "kv" : "heads", "y"});
  const Mesh mesh{{"x", 2}, {"y", 2}, {"z", 2}};
  r.equals(mesh, layout);
  r.equals(mesh, layout, {.storage = {.state = "z", .params = "z"}});
}

TEST_P(Families, DepthAndZero) {
  const Reference r({.config = small(GetParam())});
  for (int zero = 0; zero <= 3; ++zero)
    r.equals({.data = zero ? 2 : 1, .tensor = 2, .depth = 2, .sequence = true, .zero = zero});
}

TEST_P(Families, Dropout) {
  ModelConfig c = small(GetParam());
  c.dropout = c.embedding_dropout = 0.3;
  c.attention_dropout = std::string(GetParam()) == "mlp" ? 0 : 0.2;
  const Reference r({.config = c});
  r.equals({.data = 2, .tensor = 2, .sequence = true});
  r.equals({.data = 2, .context = 2});
  r.equals({.tensor = 4});
}

TEST_P(Families, SinglePrecision) {
  const Reference r({.config = small(GetParam()), .dtype = f32});
  r.equals({.data = 2, .tensor = 2, .sequence = true, .zero = 2});
  r.equals({.tensor = 4});
}

INSTANTIATE_TEST_SUITE_P(Equal, Families, testing::Values("gpt2", "llama", "mlp"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Equal, Regathered) {
  const Reference r({.config = small("gpt2")});
  r.equals({.data = 2, .tensor = 2, .sequence = true}, {.regather = true});
}

TEST(Equal, GroupedHeadsAreSplitEitherWayOrBoth) {
  const Reference r({.config = small("llama")});
  r.equals({{"t", 4}}, {{"kv", "t"}, {"ff", "t"}});
  r.equals({{"t", 2}}, {{"group", "t"}});
  r.equals({{"t", 2}, {"u", 2}}, {{"kv", "t"}, {"group", "u"}, {"ff", {"t", "u"}}, {"seq_r", {"u", "t"}}});
}

// Rotary needs the head dim whole; without it attention is taken apart.
TEST(Equal, EveryDimThatCanBeSplit) {
  const Reference r({.config = small("gpt2")});
  r.equals({{"t", 2}}, {{"head", "t"}});
  r.equals({{"t", 2}, {"u", 2}}, {{"head", "t"}, {"heads", "u"}, {"ff", {"u", "t"}}, {"vocab", "u"}});
  r.equals({{"t", 2}, {"u", 2}}, {{"position", "t"}, {"seq_r", {"u", "t"}}, {"seq", "t"}});
}

// Nobody is dropped, or tokens that find no slot; and the router's penalties are logical: per sequence, or over all
// tokens.
TEST(Equal, Experts) {
  for (const bool pooled : {false, true}) {
    Setting s{.config = small("llama")};
    s.config.family = "mixtral", s.config.experts = 4, s.config.capacity = pooled ? 0.75 : 0;
    s.config.balance = 0.05, s.config.router_z = 0.02, s.config.balance_pooled = pooled;
    const Reference r(s);
    r.equals({.data = 4});
    r.equals({{"data", 2}}, {{"batch", "data"}, {"experts", "data"}});
    r.equals({{"data", 2}, {"expert", 2}}, {{"batch", {"data", "expert"}}, {"experts", "expert"}});
    r.equals({.data = 2, .tensor = 2, .expert = 2, .sequence = true, .zero = 1});
    r.equals({.tensor = 2, .expert = 2, .context = 2});
    r.equals({.tensor = 4});
  }
}

TEST(Equal, ExpertsWithoutDropsOnAnyAxis) {
  for (const Activation how : {Activation::silu, Activation::gelu, Activation::relu}) {  // relu: parts are added up
    Setting s{.config = small("llama")};
    s.config.family = "mixtral", s.config.experts = 4, s.config.balance = 0.05, s.config.activation = how;
    const Reference r(s);
    r.equals({.expert = 4});  // more ranks than a token has experts
    r.equals({{"t", 2}}, {{"experts", "t"}, {"kv", "t"}});
    r.equals({{"t", 2}, {"u", 2}}, {{"experts", "t"}, {"ff_x", "u"}, {"seq_r", "u"}});
    r.equals({{"t", 2}, {"u", 2}}, {{"experts", "t"}, {"model", "u"}});
    r.equals({{"t", 2}}, {{"model", "t"}});
    r.equals({.data = 2, .expert = 2, .zero = 3});
  }
}

// Rows go to the ranks of their experts. With room for all nothing is lost.
TEST(Equal, ExchangedRows) {
  Setting s{.config = small("llama")};
  s.config.family = "mixtral", s.config.experts = 4, s.config.balance = 0.05;
  const Reference gathered(s);
  s.expert_rows = ExpertRows::exchange;
  const Reference r(s);
  EXPECT_NEAR(r.plain.loss, gathered.plain.loss, 1e-12);
  EXPECT_NEAR(r.plain.norm, gathered.plain.norm, 1e-12);
  const ShardOptions room{.room = 4};
  r.equals({.expert = 2}, room);
  r.equals({.expert = 4}, room);
  r.equals({.data = 2, .tensor = 2, .expert = 2, .sequence = true, .zero = 3}, room);
  r.equals({.expert = 2, .context = 2}, room);
  r.equals({{"d", 2}}, {{"batch", "d"}, {"experts", "d"}}, room);
  r.equals({.data = 2});
}

// A maximum that were added up instead would be seen here.
TEST(Equal, LargeLogits) {
  Setting s{.config = small("gpt2")};
  s.config.tied = false;
  Reference r(s);
  Problem p = r.problem;
  for (std::size_t k = 0; k < p.params.size(); ++k)
    if (p.traced.params[k] == "head")
      for (i64 i = 0; i < p.params[k].count(); ++i) p.params[k].set(i, 1000 * p.params[k].at(i));
  const Spmd plain = p.run(Reference::unsharded(p));
  EXPECT_GT(plain.loss, 100);
  const NamedLayout n = layout_of({.data = 2, .tensor = 4}, p.traced.step.graph.dims);
  expect_equal(p, plain, n.mesh, n.layout);
}

// A sequence that is shorter than the positions the model has.
TEST(Equal, ShortSequences) {
  const Reference r({.config = small("gpt2"), .seq = 4});
  r.equals({.data = 2, .tensor = 2, .sequence = true});
}

// Any layout that is not refused gives the same numbers.
TEST(Equal, RandomLayouts) {
  std::map<std::string, std::unique_ptr<Reference>> known;
  int legal = 0;
  EXPECT_TRUE(holds("any legal layout gives the same numbers", 400, [&] {
    const std::string family = *rc::gen::element<std::string>("gpt2", "llama", "mlp");
    if (!known[family]) {
      Setting s{.config = small(family), .rows = 8, .seq = 4};
      s.config.dropout = 0.2;
      known[family] = std::make_unique<Reference>(s);
    }
    const Reference& r = *known[family];
    const int axes = *rc::gen::inRange(1, 4);
    Mesh mesh;
    for (int a = 0; a < axes; ++a) mesh.push_back({std::string(1, char('a' + a)), 2});
    std::vector<std::string> names;
    for (const Dim& d : r.problem.traced.step.graph.dims)
      if (!d.is_whole && d.name != "three") names.push_back(d.name);
    Layout layout;
    for (const Axis& a : mesh) {  // every axis takes one to three dims, of which no tensor may have two
      const int dims = *rc::gen::inRange(1, 4);
      for (int k = 0; k < dims; ++k) {
        const std::string name = *rc::gen::elementOf(names);
        const auto it = std::find_if(layout.begin(), layout.end(), [&](const LayoutEntry& e) { return e.dim == name; });
        if (it == layout.end())
          layout.push_back({name, a.name});
        else if (std::find(it->axes.begin(), it->axes.end(), a.name) == it->axes.end())
          it->axes.push_back(a.name);
      }
    }
    ShardOptions o{.regather = *rc::gen::arbitrary<bool>()};
    const int stage = *rc::gen::inRange(0, 4);
    if (stage > 0) o.storage.state = {"a"};
    if (stage > 1) o.storage.gradients = {"a"};
    if (stage > 2) o.storage.params = {"a"};
    try {
      shard(r.problem.traced.step, mesh, layout, o);
    } catch (const Error& e) {
      ASSERT_EQ(e.kind(), Error::Kind::input) << e.what();
      return;
    }
    ++legal;
    r.equals(mesh, layout, o);
    RC_ASSERT(!testing::Test::HasFailure());
  }));
  EXPECT_GT(legal, asked_cases(400) * 60 / 400);
}

}  // namespace
}  // namespace stretto

#include "stretto/models/family.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "models/variants.h"
#include "stretto/ops/ops.h"
#include "support/message.h"

namespace stretto {
namespace {

using test::Variant;

std::vector<i64> sizes_of(const Tensor& t) {
  std::vector<i64> s;
  for (const Dim& d : t.dims()) s.push_back(d.valid());
  return s;
}

TEST(Families, EveryEntryIsWhole) {
  const auto all = test::variants();
  for (const Family* f : families()) {
    EXPECT_EQ(&family_named(f->name), f);
    EXPECT_FALSE(f->summary.empty()) << f->name;
    EXPECT_TRUE(f->fill && f->check && f->params && f->hidden) << f->name;
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const Variant& v) { return v.config.family == f->name; }))
        << "no variant of " << f->name << " is tested";
    // With a form on disk every parameter has a place there, without one none has.
    for (const ParamSpec& p : f->params(complete({.family = std::string(f->name)})))
      EXPECT_EQ(p.stored.empty(), f->stored_prefix.empty()) << f->name << " " << p.name;
  }
}

TEST(Families, TracedParametersAreTheDeclaredOnes) {
  for (const Variant& v : test::variants()) {
    const ModelConfig c = checked(v.config);
    Trace t;
    make_model(c, 2)(t);
    const std::vector<ParamSpec> specs = family_named(c.family).params(c);
    ASSERT_EQ(t.params.size(), specs.size()) << v.name;
    i64 count = 0;
    for (const ParamInfo& p : t.params) {
      const auto spec = std::find_if(specs.begin(), specs.end(), [&](const ParamSpec& s) { return s.name == p.name; });
      ASSERT_NE(spec, specs.end()) << v.name << " " << p.name;
      EXPECT_EQ(sizes_of(p.tensor), spec->sizes) << v.name << " " << p.name;
      count += spec->elements();
      // What is a matrix on disk decays; gains and biases do not.
      if (!spec->stored.empty()) {
        EXPECT_EQ(p.options.decay, spec->stored_shape().size() == 2) << p.name;
      }
    }
    EXPECT_EQ(count, parameter_count(c));
  }
}

TEST(Families, BoundariesStandAfterTheEmbeddingAndEachHalfLayer) {
  for (const Variant& v : test::variants()) {
    Trace t;
    make_model(v.config, 2)(t);
    const auto& nodes = t.builder.graph.nodes;
    const auto n = std::count_if(nodes.begin(), nodes.end(), [](const Node& n) { return n.op == &boundary_op; });
    EXPECT_EQ(n, 1 + (v.config.family == "mlp" ? 1 : 2) * v.config.layers) << v.name;
    EXPECT_TRUE(verify(t.builder.graph).empty()) << v.name;
  }
}

TEST(Families, InputsAreIdsAndTargetsOfBatchAndSeq) {
  for (const Variant& v : test::variants()) {
    Trace t({.microbatches = 3});
    make_model(v.config, 6, 5)(t);
    ASSERT_EQ(t.inputs.size(), 2u);
    for (const Tensor& in : t.inputs) {
      EXPECT_EQ(in.dims().str(), "{batch=2 seq=5}");
      EXPECT_EQ(in.dtype(), i32);
    }
    EXPECT_EQ(t.rows_per_step, 6);
  }
}

TEST(Families, ResidualProjectionsStartSmaller) {
  Trace t;
  make_model({.layers = 8, .init_std = 0.04}, 2)(t);
  for (const ParamInfo& p : t.params) {
    const bool residual = p.name.ends_with(".o") || p.name.ends_with(".down");
    if (p.options.init.kind == Init::Kind::normal) {
      EXPECT_DOUBLE_EQ(p.options.init.scale, residual ? 0.01 : 0.04) << p.name;
    } else {
      EXPECT_EQ(p.options.init.kind, p.name.ends_with(".gain") ? Init::Kind::ones : Init::Kind::zeros) << p.name;
    }
  }
}

TEST(Families, LongSequencesAreRefusedWhereThereAreNoPositionsForThem) {
  const auto trace = [](const char* family) {
    return refusal_of([&] {
      Trace t;
      make_model({.family = family, .context = 16}, 2, 17)(t);
    });
  };
  EXPECT_EQ(trace("gpt2"),
            "[gpt2] a sequence has 17 ids and the model 16 positions; hint: use sequences of at most 16 ids, or a "
            "model with a longer context");
  EXPECT_EQ(trace("llama"), "no error");
}

TEST(Families, WrongBatchesAreRefused) {
  EXPECT_EQ(refusal_of([] { make_model({}, 0); }), "[model] 0 sequences per step; hint: use at least 1");
  EXPECT_EQ(refusal_of([] { make_model({}, 1, -1); }),
            "[model] sequences of -1 ids; hint: use at least 1, or 0 for the context");
}

}  // namespace
}  // namespace stretto

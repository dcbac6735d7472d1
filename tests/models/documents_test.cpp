// Attention that stays within documents.
#include <gtest/gtest.h>

#include <cmath>

#include "stretto/models/family.h"
#include "stretto/train/trainer.h"

namespace stretto {
namespace {

using Ids = std::vector<std::int32_t>;

// "chunks": a llama whose layers see chunks, and one without positions whose queries grow.
ModelConfig small(const std::string& family, bool documents) {
  const bool chunks = family == "chunks";
  ModelConfig c{.family = chunks ? "llama" : family, .layers = 2, .width = 16, .heads = 4, .context = 8, .vocab = 31};
  if (c.family == "llama") c.kv_heads = 2;
  if (chunks) c.pattern = "cn", c.chunk = 3, c.temperature_floor = 2, c.temperature_scale = 0.5, c.qk_norm_bare = true;
  c.documents = documents;
  return c;
}

Trainer trainer_of(const ModelConfig& c, i64 rows) {
  return Trainer(compile(make_model(c, rows), sgd({.lr = 0.1}), {.seed = 3, .dtype = f64}));
}

Batch segments_batch(const Ids& ids, const Ids& targets, const Ids& segments = {}) {
  const std::vector<i64> sizes{i64(ids.size()) / 8, 8};
  Batch b{{"ids", Array::of<std::int32_t>(ids, sizes)}, {"targets", Array::of<std::int32_t>(targets, sizes)}};
  if (!segments.empty()) b.emplace("segments", Array::of<std::int32_t>(segments, sizes));
  return b;
}

double apart(const Array& a, const Array& b) {
  const std::vector<double> x = a.doubles(), y = b.doubles();
  double d = 0, size = 1e-6;
  for (std::size_t i = 0; i < x.size(); ++i)
    d = std::max(d, std::abs(x[i] - y[i])), size = std::max(size, std::abs(y[i]));
  return d / size;
}

void expect_same_step(Trainer& a, const Batch& of_a, Trainer& b, const Batch& of_b, const std::string& what) {
  const double x = a.step(of_a).loss, y = b.step(of_b).loss;
  EXPECT_NEAR(x, y, 1e-12 * y) << what;
  for (const CompiledParam& p : a.compiled().params)
    EXPECT_LE(apart(a.gradient(p.name), b.gradient(p.name)), 1e-10) << what << " " << p.name;
}

const Ids document_ids{3, 14, 15, 9, 26, 5, 30, 8}, document_targets{14, 15, 9, -100, 5, 30, 8, 7},
    document_segments{0, 0, 0, 0, 1, 1, 1, 1};

TEST(Documents, OneDocumentPerRowIsPlainCausalAttention) {
  for (const char* family : {"gpt2", "llama", "chunks"}) {
    Trainer with = trainer_of(small(family, true), 1), without = trainer_of(small(family, false), 1);
    expect_same_step(with, segments_batch(document_ids, document_targets, Ids(8, 5)), without,
                     segments_batch(document_ids, document_targets), family);
  }
}

TEST(Documents, WhatAnotherDocumentSaysChangesNothing) {
  for (const char* family : {"gpt2", "llama"}) {
    Ids targets = document_targets, other = document_ids;
    for (std::size_t i = 0; i < 4; ++i) targets[i] = -100, other[i] = 1;
    Trainer with = trainer_of(small(family, true), 1), without = trainer_of(small(family, false), 1);
    EXPECT_EQ(with.evaluate(segments_batch(document_ids, targets, document_segments)).loss,
              with.evaluate(segments_batch(other, targets, document_segments)).loss)
        << family;
    EXPECT_NE(without.evaluate(segments_batch(document_ids, targets)).loss,
              without.evaluate(segments_batch(other, targets)).loss)
        << family;
  }
}

// Rotary positions are relative and learned ones begin again: a document is the same wherever it stands.
TEST(Documents, TwoInARowTrainLikeEachInARowOfItsOwn) {
  const Ids ids{3, 14, 15, 9, 1, 1, 1, 1, 26, 5, 30, 8, 1, 1, 1, 1};
  const Ids targets{14, 15, 9, -100, -100, -100, -100, -100, 5, 30, 8, 7, -100, -100, -100, -100};
  for (const char* family : {"gpt2", "llama", "chunks"})
    for (const double dropout : {0.0, 1e-300}) {  // the smallest rate takes the other path and drops nothing
      ModelConfig packed = small(family, true), apart = small(family, false);
      packed.attention_dropout = apart.attention_dropout = dropout;
      Trainer a = trainer_of(packed, 1), b = trainer_of(apart, 2);
      expect_same_step(a, segments_batch(document_ids, document_targets, document_segments), b,
                       segments_batch(ids, targets), fmt::format("{} {}", family, dropout));
    }
}

}  // namespace
}  // namespace stretto

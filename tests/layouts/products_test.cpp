// Products of the pipeline with every layout: the numbers are those of the serial run.
#include <memory>

#include "layouts/compare.h"

namespace stretto {
namespace {

const Reference& reference(const std::string& family, int layers = 2) {
  static std::map<std::pair<std::string, int>, std::unique_ptr<Reference>> known;
  auto& r = known[{family, layers}];
  if (!r) r = std::make_unique<Reference>(Setting{.config = small(family, layers)});
  return *r;
}

Parallel layout(int pipe, const ParallelNames& names, const char* schedule = "1f1b") {
  Parallel p{.names = names, .schedule = schedule};
  if (pipe > 1) p.mesh = {{"pipe", pipe}};
  return p;
}

class Families : public testing::TestWithParam<std::string> {};

// All ordered ways to make 8 of three factors.
TEST_P(Families, EightRanksAsPipeDataTensor) {
  for (int pipe : {1, 2, 4, 8})
    for (int data = 1; data * pipe <= 8; data *= 2) {
      const int tensor = 8 / pipe / data;
      for (const bool sequence : {false, true})
        for (int zero = 0; zero <= (data > 1 ? 3 : 0); ++zero) {
          if (sequence && tensor == 1) continue;
          const int layers = pipe == 8 ? 3 : 2;
          reference(GetParam(), layers)
              .equals(layout(pipe, {.data = data, .tensor = tensor, .sequence = sequence, .zero = zero}));
          if (HasFailure()) return;
        }
    }
}

TEST_P(Families, Context) {
  for (const bool exchange : {false, true}) {
    const Reference& r = reference(GetParam());
    r.equals(layout(1, {.context = 2, .exchange = exchange}));
    r.equals(layout(2, {.context = 2, .exchange = exchange}));
    r.equals(layout(1, {.data = 2, .context = 2, .exchange = exchange, .zero = 2}));
    if (exchange && GetParam() != "gpt2") continue;  // two heads with keys of their own
    r.equals(layout(2, {.tensor = 2, .context = 2, .sequence = true, .exchange = exchange}));
  }
}

TEST_P(Families, RowsColumnsDepth) {
  const bool grouped = GetParam() != "gpt2", experts = GetParam() == "mixtral";
  Parallel p{.mesh = {{"x", 2}, {"y", 2}, {"z", 2}},
             .layout = {{"model", "x"},
                        {experts ? "ff_x" : "ff", "y"},
                        {"vocab", "y"},
                        {"batch", "z"},
                        {grouped ? "kv" : "heads", "y"}}};
  const Reference& r = reference(GetParam());
  r.equals(p);
  p.storage = {.state = "z", .params = "z"};
  r.equals(p);
  p.mesh.insert(p.mesh.begin(), {"pipe", 2});
  r.equals(p);
  r.equals(layout(1, {.tensor = 2, .depth = 2, .sequence = true}));
  r.equals(layout(1, {.data = 2, .depth = 2, .zero = 3}));
}

// Hybrid sharded data parallelism: cut within a group, copies between groups.
TEST_P(Families, Replicas) {
  const Reference& r = reference(GetParam());
  for (const int zero : {0, 1, 2, 3}) r.equals(layout(1, {.data = 2, .replicas = 2, .zero = zero}));
  r.equals(layout(2, {.data = 2, .replicas = 2, .zero = 3}, "zb-h1"));
  r.equals(layout(2, {.data = 2, .replicas = 2, .tensor = 2, .sequence = true, .zero = 1}));
}

TEST_P(Families, Schedules) {
  const Reference& r = reference(GetParam());
  for (const char* schedule : {"1f1b", "interleaved-1f1b", "zb-h1", "zb-v", "dualpipe-v"}) {
    r.equals(layout(2, {.data = 2, .tensor = 2, .sequence = true, .zero = 1}, schedule));
    r.equals(layout(2, {.data = 2, .zero = 3}, schedule));
    r.equals(layout(2, {.tensor = 4}, schedule));
    if (HasFailure()) FAIL() << schedule;
  }
}

TEST_P(Families, Recompute) {
  const Reference& r = reference(GetParam());
  for (const Recompute mode : {Recompute::full, Recompute::selective}) {
    Parallel p = layout(2, {.data = 2, .tensor = 2, .sequence = true});
    p.recompute = {mode};
    r.equals(p);
  }
  Parallel p = layout(1, {.tensor = 4, .sequence = true});
  p.regather = true;
  r.equals(p);
}

TEST_P(Families, Dropout) {
  Setting s{.config = small(GetParam()), .steps = 3};
  s.config.dropout = s.config.embedding_dropout = 0.2;
  const Reference r(s);
  r.equals(layout(2, {.data = 2, .tensor = 2, .sequence = true}));
  r.equals(layout(1, {.data = 2, .context = 2}));
}

// The head in slices of the vocabulary, of which the last one is smaller and padded: each is split as the whole is.
TEST_P(Families, HeadParts) {
  Setting s{.config = small(GetParam()), .steps = 3};
  s.config.vocab = 45, s.config.pad_vocab = 4, s.config.head_parts = 3;
  const Reference r(s);
  r.equals(layout(1, {.tensor = 4}));
  r.equals(layout(1, {.data = 2, .context = 2}));
  r.equals(layout(4, {.data = 2, .tensor = 2, .sequence = true, .zero = 1}, "zb-h1"));
  r.equals(layout(2, {.data = 2, .zero = 3}, "zb-v"));
  r.equals(layout(2, {.data = 2, .tensor = 2}, "dualpipe-v"));
  r.equals({.mesh = {{"x", 2}, {"y", 2}}, .layout = {{"model", "x"}, {"vocab", "y"}}});
  for (const Recompute mode : {Recompute::full, Recompute::selective}) {
    Parallel p = layout(2, {.tensor = 2, .sequence = true}, "interleaved-1f1b");
    p.recompute = {mode};
    r.equals(p);
  }
  s.training.dtype = f32;
  Reference(s).equals(layout(4, {.tensor = 2, .sequence = true}));
}

TEST_P(Families, SinglePrecision) {
  Setting s{.config = small(GetParam())};
  s.training.dtype = f32;
  const Reference r(s);
  r.equals(layout(1, {.data = 2}));
  r.equals(layout(1, {.tensor = 4}));
  r.equals(layout(2, {.data = 2, .tensor = 2, .sequence = true, .zero = 1}));
  r.equals(layout(2, {.data = 4, .zero = 3}, "zb-v"));
}

// Without drops, and with slots that some tokens do not get.
const Reference& experts(double capacity) {
  static std::map<double, Reference> all;
  if (const auto it = all.find(capacity); it != all.end()) return it->second;
  Setting s{.config = small("mixtral")};
  s.config.capacity = capacity;
  return all.try_emplace(capacity, s).first->second;
}

TEST(Experts, EightRanksAsDataExpertTensor) {
  for (int data : {1, 2, 4, 8})
    for (int expert = 1; expert * data <= 8; expert *= 2) {
      const int tensor = 8 / data / expert;
      for (const bool sequence : {false, true}) {
        if (sequence && tensor == 1) continue;
        for (int zero = 0; zero <= (data > 1 ? 3 : 0); ++zero) {
          experts(zero % 2 == 0 ? 0 : 0.75)
              .equals(
                  layout(1, {.data = data, .tensor = tensor, .expert = expert, .sequence = sequence, .zero = zero}));
          if (testing::Test::HasFailure()) return;
        }
      }
    }
}

TEST(Experts, WithThePipelineAndStorage) {
  for (const double capacity : {0.0, 0.75}) {
    const Reference& r = experts(capacity);
    r.equals(layout(2, {.data = 2, .expert = 2, .zero = 1}));
    r.equals(layout(2, {.tensor = 2, .expert = 2, .sequence = true}, "zb-v"));
    r.equals(layout(1, {.data = 2, .expert = 4, .zero = 3}));
    r.equals(layout(1, {.expert = 8}));  // more than a token has experts
    r.equals({.mesh = {{"pipe", 2}, {"data", 4}}, .layout = {{"batch", "data"}, {"experts", "data"}}});
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, Families, testing::Values("gpt2", "llama", "mixtral"),
                         [](const auto& i) { return i.param; });

}  // namespace
}  // namespace stretto

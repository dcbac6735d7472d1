// A head in parts: the numbers of a whole one, and what it is called, refused and kept for.
#include "stretto/models/head.h"

#include <gmock/gmock.h>

#include <cmath>

#include "stretto/generate/inner/decoder.h"
#include "stretto/step/keeps.h"
#include "stretto/train/trainer.h"
#include "support/files.h"
#include "support/message.h"
#include "support/small_models.h"

namespace stretto {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ModelConfig with_parts(ModelConfig c, i64 parts) {
  c.head_parts = parts;
  return checked(c);
}

struct Named {
  std::string name;
  ModelConfig config;
};
// A vocabulary that no number of parts divides.
std::vector<Named> models() {
  const auto of = [](const char* family) {
    ModelConfig c = tiny(family, 1);
    c.vocab = 53;
    if (c.family == "mixtral") c.experts = 4, c.balance = 0.05;
    return c;
  };
  std::vector<Named> all;
  for (const char* family : {"gpt2", "llama", "mixtral", "mlp"})
    for (const bool tied : {true, false}) {
      ModelConfig c = of(family);
      c.tied = tied;
      all.push_back({fmt::format("{}, tied {}", family, tied), c});
    }
  ModelConfig c = of("llama");
  c.pad_vocab = 8;
  all.push_back({"padded", c});
  c.logit_scale = 0.5, c.logit_softcap = 2, c.tied = true;
  all.push_back({"scaled and capped", c});
  return all;
}

Batch batch_for(const Compiled& c, i64 vocab) {
  Batch b = random_batch(c, vocab);
  auto* targets = reinterpret_cast<std::int32_t*>(b.at("targets").bytes.data());
  for (i64 i = 0; i < b.at("targets").elements(); i += 5) targets[i] = -100;
  return b;
}

double part_gap(const Array& a, const Array& b) {
  const std::vector<double> x = a.doubles(), y = b.doubles();
  double most = x.size() == y.size() ? 0 : INFINITY, size = 1e-6;
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i)
    most = std::max(most, std::abs(x[i] - y[i])), size = std::max(size, std::abs(y[i]));
  return most / size;
}

Weights weights_of(const Trainer& t) {
  Weights w;
  for (const CompiledParam& p : t.compiled().params) w.emplace(p.name, t.parameter(p.name));
  return w;
}
Weights gradients_of(const Trainer& t) {
  Weights w;
  for (const CompiledParam& p : t.compiled().params) w.emplace(p.name, t.gradient(p.name));
  return w;
}

// Loss, every gradient, and what is learned of them.
void expect_as_whole(const Named& m, i64 parts, DType dtype, double limit) {
  const std::string what = fmt::format("{}, {} parts, {}", m.name, parts, name_of(dtype));
  const auto trainer = [&](const ModelConfig& c) {
    return Trainer(compile(make_model(c, 4), sgd({.lr = 0.1}), {.microbatches = 2, .seed = 5, .dtype = dtype}));
  };
  const ModelConfig config = with_parts(m.config, parts);
  Trainer whole = trainer(m.config), cut = trainer(config);
  for (const auto& [name, w] : in_head_parts(config, weights_of(whole))) cut.set_parameter(name, w);
  const Batch batch = batch_for(whole.compiled(), m.config.vocab);
  for (int step = 0; step < 2; ++step) {
    const double a = whole.step(batch).loss, b = cut.step(batch).loss;
    EXPECT_LE(std::abs(a - b), limit * a) << what;
    const Weights expected = gradients_of(whole), got = head_parts_joined(config, gradients_of(cut));
    ASSERT_EQ(got.size(), expected.size()) << what;
    for (const auto& [name, g] : expected) EXPECT_LE(part_gap(got.at(name), g), limit) << what << " " << name;
  }
  EXPECT_LE(std::abs(whole.evaluate(batch).loss - cut.evaluate(batch).loss), limit) << what;
}

TEST(HeadParts, LossAndGradientsAreThoseOfAWholeHead) {
  for (const Named& m : models())
    for (const i64 parts : {2, 3, 5}) expect_as_whole(m, parts, f64, 1e-10);
  for (const Named& m : models()) expect_as_whole(m, 4, f32, 1e-5);
}

TEST(HeadParts, HaveNamesSlicesAndBoundariesOfTheirOwn) {
  ModelConfig c = with_parts({.family = "llama", .layers = 2, .vocab = 53, .pad_vocab = 8}, 3);
  std::vector<std::string> slices;
  for (const VocabPart& p : vocab_parts(c, "head"))
    slices.push_back(fmt::format("{} from {}: {}", p.param, p.first, p.dim.str()));
  EXPECT_THAT(slices, ElementsAre("head.0 from 0: vocab_part=24", "head.1 from 24: vocab_rest=16",
                                  "head.2 from 40: vocab_last=13+3"));
  EXPECT_EQ(vocab_parts(c, "wte").size(), 1u);
  const ModelConfig wide = with_parts({.family = "llama", .vocab = 128256}, 5);  // 256 ranks would divide it
  for (const VocabPart& p : vocab_parts(wide, "head")) EXPECT_EQ(p.dim.size % 256, 0) << p.dim.str();
  c.tied = true;
  EXPECT_EQ(vocab_parts(c, "wte").back().param, "wte.2");
  Trace t;
  make_model(c, 2)(t);
  std::uint16_t last = 0;
  for (const Node& n : t.builder.graph.nodes) last = std::max(last, n.piece);
  EXPECT_EQ(last, 1 + 2 * 2 + 2);
}

TEST(HeadParts, WeightsAreCutAndJoined) {
  for (const Named& m : models()) {
    const ModelConfig config = with_parts(m.config, 3);
    Trainer t(compile(make_model(m.config, 2), sgd(), {.seed = 5}));
    const Weights whole = weights_of(t), cut = in_head_parts(config, whole);
    EXPECT_FALSE(cut.contains("head"));
    EXPECT_EQ(cut.contains("wte"), !*config.tied);
    const Weights again = head_parts_joined(config, cut);
    ASSERT_EQ(again.size(), whole.size());
    for (const auto& [name, w] : whole) EXPECT_EQ(again.at(name).bytes, w.bytes) << name;
    if (m.config.family == "mlp" || m.config.logit_softcap > 0) continue;  // no form on disk
    const test::Folder a, b;
    save_hf(a.str(), m.config, whole);
    save_hf(b.str(), config, cut);
    EXPECT_EQ(read_hf_config(b.str()).config, read_hf_config(a.str()).config);
    const Weights x = load_hf(a.str()).weights, y = load_hf(b.str()).weights;
    ASSERT_EQ(x.size(), y.size());
    for (const auto& [name, w] : x) EXPECT_EQ(y.at(name).bytes, w.bytes) << m.name << " " << name;
  }
}

TEST(HeadParts, DecodingSeesAllOfThem) {
  for (const Named& m : models()) {
    const ModelConfig config = with_parts(m.config, 3);
    Trainer t(compile(make_model(m.config, 2), sgd(), {.seed = 5}));
    const Weights whole = weights_of(t);
    Decoder a(m.config, whole, 8), b(config, in_head_parts(config, whole), 8);
    const std::vector<std::int32_t> ids{1, 52, 30};
    const std::vector<double> x = a.feed(ids), y = b.feed(ids);
    ASSERT_EQ(x.size(), 53u);
    ASSERT_EQ(y.size(), 53u);
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], 1e-5) << m.name << " " << i;
  }
}

// What backward needs of a part's logits is their only copy.
TEST(HeadParts, LogitsAreKeptOnce) {
  const ModelConfig config = with_parts(tiny("llama", 1), 2);
  const Compiled c = compile(make_model(config, 8), sgd(), {.microbatches = 4}, {.mesh = {{"pipe", 4}}});
  const IdVector<StageId, StageKeeps> kept = keeps(*c.program->step, c.program->stage_of);
  const std::vector<VocabPart> parts = vocab_parts(config, "head");
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const u64 slice = u64(2 * 16 * parts[i].dim.size * 4);
    int copies = 0;
    for (const Keep& k : kept[StageId(int(i) + 2)].values)
      copies += k.from == Part::F && c.program->step->values[k.value].bytes == slice;
    EXPECT_EQ(copies, 1) << parts[i].param;
  }
}

TEST(HeadParts, IdsAndLabelsOutsideOfTheVocabularyAreNamed) {
  Trainer t(compile(make_model(with_parts(tiny("gpt2", 1), 3), 4), sgd()));
  const auto refusal = [&](const char* input, std::int32_t value) {
    Batch b = random_batch(t.compiled(), 50);
    reinterpret_cast<std::int32_t*>(b.at(input).bytes.data())[7] = value;
    return refusal_of([&] { t.step(b); });
  };
  EXPECT_THAT(refusal("ids", 50), HasSubstr("[embedding] id 50 is outside of dim 'vocab', which has 50 rows"));
  EXPECT_THAT(refusal("ids", -1), HasSubstr("[embedding] id -1 is outside of dim 'vocab', which has 50 rows"));
  EXPECT_THAT(refusal("targets", 50),
              HasSubstr("[cross_entropy] label 50 is outside of dim 'vocab', which has 50 classes"));
}

TEST(HeadParts, TooManyAreRefused) {
  const auto refusal = [](i64 vocab, i64 pad, i64 parts) {
    return refusal_of([&] { checked({.vocab = vocab, .pad_vocab = pad, .head_parts = parts}); });
  };
  EXPECT_THAT(refusal(20, 1, 0), HasSubstr("[model.head_parts] head_parts is 0; hint: use a number from 1 to 256"));
  EXPECT_THAT(refusal(20, 1, 21), HasSubstr("head_parts is 21, and of a vocabulary of 20 (pad_vocab is 1) some would "
                                            "be empty; hint: use at most 20"));
  EXPECT_THAT(refusal(20, 8, 4), HasSubstr("hint: use at most 3"));
  EXPECT_EQ(refusal(9, 1, 4), "no error");
}

}  // namespace
}  // namespace stretto

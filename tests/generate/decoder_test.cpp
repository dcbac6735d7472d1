// Decoding token by token says what the whole model says.
#include "stretto/generate/inner/decoder.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>

#include "stretto/formats/fields.h"
#include "stretto/formats/safetensors.h"
#include "stretto/generate/generate.h"
#include "stretto/train/trainer.h"
#include "support/message.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path data_folder = STRETTO_TEST_DATA;

std::vector<std::int32_t> ids_of(const Field& list) {
  std::vector<std::int32_t> ids;
  for (const Field& f : *list.array()) ids.push_back(std::int32_t(std::get<i64>(f.value)));
  return ids;
}

TEST(Decoder, GreedyTokensAreThoseOfTransformers) {
  for (const char* model : {"gpt2", "llama", "mixtral"}) {
    const Field expected = read_json_file(data_folder / "hf" / model / "expected.json");
    const Field& greedy = *expected.find("greedy");
    const std::vector<std::int32_t> tokens = ids_of(*greedy.find("tokens"));
    std::vector<std::int32_t> ours;
    const i64 n = generate(load_model(data_folder / "hf" / model / "model"), ids_of(*greedy.find("prompt")),
                           {.tokens = i64(tokens.size()), .sample = {.temperature = 0}}, [&](std::int32_t id) {
                             ours.push_back(id);
                             return true;
                           });
    EXPECT_EQ(ours, tokens) << model;
    EXPECT_EQ(n, i64(tokens.size()));
  }
}

// The context that was trained on has 16 tokens: what is said does not depend on how much may be said, and beyond 16
// every token is what the model says of the whole sequence at once.
TEST(Decoder, LongropeTurnsByWhatIsReadAndNotByWhatMayBe) {
  const StoredModel m = load_model(data_folder / "hf_models" / "phi3_longrope");
  const std::vector<std::int32_t> prompt{3, 17, 5, 11, 8};
  const auto greedy = [&](i64 tokens, const std::vector<std::int32_t>& from) {
    std::vector<std::int32_t> ids;
    generate(m, from, {.tokens = tokens, .sample = {.temperature = 0}}, [&](std::int32_t id) {
      ids.push_back(id);
      return true;
    });
    return ids;
  };
  const std::vector<std::int32_t> most = greedy(24, prompt);
  ASSERT_EQ(most.size(), 24u);
  for (const i64 tokens : {1, 5, 11, 12, 13, 20})
    EXPECT_EQ(greedy(tokens, prompt), std::vector<std::int32_t>(most.begin(), most.begin() + tokens)) << tokens;
  std::vector<std::int32_t> read = prompt;
  for (const std::int32_t id : most) {
    EXPECT_EQ(greedy(1, read), std::vector<std::int32_t>{id}) << read.size();
    read.push_back(id);
  }
}

TEST(Decoder, DecodesInBf16) {
  for (const char* model : {"gpt2", "llama"}) {
    const StoredModel m = load_model(data_folder / "hf" / model / "model");
    const std::vector<std::int32_t> prompt{1, 5, 9, 2, 7};
    Decoder wide(m.config, m.weights, 8), narrow(m.config, m.weights, 8, bf16), apart(m.config, m.weights, 8, bf16);
    const std::vector<double> a = wide.feed(prompt), b = narrow.feed(prompt);
    std::vector<double> c;
    for (const std::int32_t id : prompt) c = apart.feed({{id}});
    double largest = 0, rounding = 0, between = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      largest = std::max(largest, std::abs(a[i]));
      rounding = std::max(rounding, std::abs(a[i] - b[i]));
      between = std::max(between, std::abs(b[i] - c[i]));
    }
    EXPECT_LE(rounding, 0.03 * largest) << model;
    EXPECT_GT(rounding, 0) << model;
    EXPECT_LE(between, 0.03 * largest) << model;
  }
}

double difference(const std::vector<double>& a, std::span<const double> b) {
  double d = a.size() == b.size() ? 0 : INFINITY, size = 1e-30;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    d = std::max(d, std::abs(a[i] - b[i])), size = std::max(size, std::abs(b[i]));
  return d / size;
}

// All positions, whatever part of the prompt was read at once.
TEST(Decoder, EveryFamilyAgreesWithItsWholeForward) {
  int seen = 0;
  for (const fs::directory_entry& e : fs::directory_iterator(data_folder / "hf_relatives")) {
    if (!e.is_directory()) continue;
    SCOPED_TRACE(e.path().filename().string());
    ++seen;
    const HfModel m = load_hf(e.path(), f64);
    const SafeTensors expected(e.path() / "expected.safetensors");
    const StoredTensor& stored = expected.at("ids");
    const std::vector<std::int32_t> all = values<std::int32_t>(stored);
    const std::vector<double> theirs = values<double>(expected.at("logits"));
    const i64 length = stored.shape[1], vocab = m.config.vocab;
    const std::span<const std::int32_t> row(all.data(), std::size_t(length));
    for (const i64 at_once : {i64(1), i64(3), length}) {
      Decoder d(m.config, m.weights, length);
      for (i64 at = 0; at < length;) {
        const i64 n = at == 0 ? at_once : 1;
        const std::vector<double> logits = d.feed(row.subspan(std::size_t(at), std::size_t(n)));
        at += n;
        EXPECT_LE(difference(logits, {theirs.data() + (at - 1) * vocab, std::size_t(vocab)}), 2e-6) << at;
        EXPECT_EQ(d.position(), at);
      }
    }
  }
  EXPECT_EQ(seen, 9);
}

TEST(Decoder, PaddedVocabulariesAndModelsWithoutAttention) {
  for (const char* family : {"mlp", "gpt2", "llama", "mixtral"}) {
    ModelConfig c{.family = family, .layers = 2, .width = 16, .heads = 2, .context = 12, .vocab = 11, .pad_vocab = 8};
    if (c.family == "mixtral") c.experts = 4, c.capacity = 0.5;  // only training drops tokens
    Trainer t(compile(make_model(c, 1), sgd(), {.seed = 4}));
    Weights w;
    for (const CompiledParam& p : t.compiled().params) w.emplace(p.name, t.parameter(p.name));
    Decoder whole(c, w, 12), single(c, w, 12);
    const std::vector<std::int32_t> ids{1, 10, 3, 3, 7};
    const std::vector<double> a = whole.feed(ids);
    std::vector<double> b;
    for (const std::int32_t id : ids) b = single.feed({{id}});
    EXPECT_EQ(a.size(), 11u);
    EXPECT_LE(difference(a, b), 1e-5) << family;
    EXPECT_LE(difference(whole.feed({{2}}), single.feed({{2}})), 1e-5) << family;
  }
}

TEST(Decoder, MistakesAreNamed) {
  const HfModel m = load_hf(data_folder / "hf/gpt2/model");
  EXPECT_THAT(refusal_of([&] { Decoder(m.config, m.weights, 65); }),
              HasSubstr("[generate] 65 tokens are asked for, prompt included, and the model's context is 64; hint: "));
  Decoder d(m.config, m.weights, 3);
  EXPECT_THAT(refusal_of([&] { d.feed({}); }), HasSubstr("no token to go on from"));
  EXPECT_THAT(refusal_of([&] { d.feed({{256}}); }), HasSubstr("token 256 is outside of a vocabulary of 256"));
  EXPECT_THAT(refusal_of([&] { d.feed({{-1}}); }), HasSubstr("token -1"));
  d.feed({{1, 2, 3}});
  EXPECT_THAT(refusal_of([&] { d.feed({{1}}); }), HasSubstr("there is room for 3"));
}

TEST(Generate, IsAFunctionOfTheSeedAndEndsAtTheContext) {
  const StoredModel m = load_model(data_folder / "hf/gpt2/model");
  const auto run = [&](GenerateOptions o) {
    std::vector<std::int32_t> ids;
    o.sample.temperature = 1.5;
    generate(m, {1, 2, 3}, o, [&](std::int32_t id) {
      ids.push_back(id);
      return ids.size() < 90;
    });
    return ids;
  };
  EXPECT_EQ(run({.tokens = 20, .seed = 5}), run({.tokens = 20, .seed = 5}));
  EXPECT_NE(run({.tokens = 20, .seed = 5}), run({.tokens = 20, .seed = 6}));
  EXPECT_EQ(run({.tokens = 1000}).size(), 62u);  // 61 fit after the prompt, and one more is known
  const std::vector<std::int32_t> free = run({.tokens = 20});
  const auto end = std::find(free.begin(), free.end(), free[4]);
  EXPECT_EQ(run({.tokens = 20, .stop = {free[4]}}), std::vector<std::int32_t>(free.begin(), end));
  EXPECT_TRUE(run({.tokens = 0}).empty());
}

}  // namespace
}  // namespace stretto

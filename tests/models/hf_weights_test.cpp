#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "models/variants.h"
#include "stretto/formats/atomic_file.h"
#include "stretto/formats/hf_directory.h"
#include "stretto/models/hf.h"
#include "support/files.h"
#include "support/message.h"

namespace stretto {
namespace {

using test::Folder;

const std::filesystem::path hf_folder = std::filesystem::path(STRETTO_TEST_DATA) / "hf";

// A directory as it was loaded, to be changed and written to another place.
struct Copy {
  explicit Copy(const char* model) : files(hf_folder / model / "model") {
    for (const auto& [name, t] : files.tensors()) tensors.push_back({name, t.type, t.shape, t.bytes});
    json = read_json_file(hf_folder / model / "model/config.json");
  }
  NamedTensor& at(std::string_view name) {
    const auto it = std::find_if(tensors.begin(), tensors.end(), [&](const NamedTensor& t) { return t.name == name; });
    if (it == tensors.end()) throw Error("test", "no tensor '{}'", name);
    return *it;
  }
  std::string load() const {
    write_hf_weights(to.str(), tensors);
    write_file(to / "config.json", write_json(json));
    std::string text = refusal_of([&] { load_hf(to.str()); });
    EXPECT_EQ(refusal_of([&] { check_hf(to.str()); }), text)
        << "what is refused later is refused without reading values";
    const std::string here = to.str();
    for (std::size_t i; (i = text.find(here)) != std::string::npos;) text.replace(i, here.size(), "DIR");
    return text;
  }
  HfWeights files;
  std::vector<NamedTensor> tensors;
  Field json;
  Folder to;
};

bool same(const Weights& a, const Weights& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.dtype == y.second.dtype && x.second.sizes == y.second.sizes &&
           x.second.bytes == y.second.bytes;
  });
}

TEST(HfWeights, ShapesAndLayout) {
  const HfModel g = load_hf(hf_folder / "gpt2/model");
  EXPECT_EQ(g.weights.at("h.1.qkv").str(), "f32[64, 3, 4, 16]");
  EXPECT_EQ(g.weights.at("h.1.o").str(), "f32[4, 16, 64]");
  EXPECT_FALSE(g.weights.contains("head"));
  // [in, out] on disk: a reshape.
  const HfWeights gpt2(hf_folder / "gpt2/model");
  const std::vector<float> qkv = values<float>(gpt2.at("transformer.h.1.attn.c_attn.weight"));
  EXPECT_EQ(std::memcmp(qkv.data(), g.weights.at("h.1.qkv").bytes.data(), qkv.size() * 4), 0);
  // [out, in] on disk: transposed; query head h is (h / group, h % group).
  const HfModel l = load_hf(hf_folder / "llama/model", f64);
  EXPECT_EQ(l.weights.at("h.2.q").str(), "f64[64, 2, 2, 16]");
  EXPECT_EQ(l.weights.at("h.2.o").str(), "f64[2, 2, 16, 64]");
  const HfWeights llama(hf_folder / "llama/model");
  const std::vector<float> q = values<float>(llama.at("model.layers.2.self_attn.q_proj.weight"));
  const std::span<const double> ours = l.weights.at("h.2.q").as<double>();
  const auto at = [&](int in, int kv, int group, int d) {
    return ours[std::size_t(((in * 2 + kv) * 2 + group) * 16 + d)];
  };
  EXPECT_EQ(at(5, 1, 0, 3), double(q[(2 * 16 + 3) * 64 + 5]));
  EXPECT_EQ(at(63, 0, 1, 15), double(q[(1 * 16 + 15) * 64 + 63]));
}

TEST(HfWeights, SavedFilesAreTheLoadedOnes) {
  for (const char* model : {"gpt2", "llama", "mixtral"}) {
    const Folder to;
    const HfModel m = load_hf(hf_folder / model / "model", f64);
    save_hf(to.str(), m.config, m.weights);
    const HfWeights before(hf_folder / model / "model"), after(to.str());
    ASSERT_EQ(before.tensors().size(), after.tensors().size());
    for (const auto& [name, t] : before.tensors()) {
      const StoredTensor& u = after.at(name);
      EXPECT_EQ(t.str(), u.str()) << name;
      EXPECT_EQ(std::memcmp(t.bytes.data(), u.bytes.data(), t.bytes.size()), 0) << name;
    }
    const HfModel back = load_hf(to.str(), f64);
    EXPECT_EQ(back.config, m.config);
    EXPECT_TRUE(same(back.weights, m.weights));
  }
}

TEST(HfWeights, TwoByteTypesRoundOnceAndThenStay) {
  for (const FileType type : {FileType::BF16, FileType::F16}) {
    const Folder first, second;
    const HfModel m = load_hf(hf_folder / "llama/model");
    save_hf(first.str(), m.config, m.weights, {.stored = type, .shard_bytes = 100'000});  // in several shards
    const HfModel rounded = load_hf(first.str());
    EXPECT_EQ(rounded.stored, type);
    for (const auto& [name, a] : m.weights) {
      const std::span<const float> x = a.as<float>(), y = rounded.weights.at(name).as<float>();
      for (std::size_t i = 0; i < x.size(); ++i)
        ASSERT_NEAR(x[i], y[i], std::abs(x[i]) / (type == FileType::BF16 ? 256 : 2048) + 1e-7) << name;
    }
    save_hf(second.str(), rounded.config, rounded.weights, {.stored = type});
    EXPECT_TRUE(same(load_hf(second.str()).weights, rounded.weights));
  }
}

// Nothing of it is written: what was there before stays whole.
TEST(HfWeights, NumbersThatDoNotFitAreRefused) {
  HfModel m = load_hf(hf_folder / "llama/model");
  const Weights before = m.weights;
  const Folder to, fresh;
  save_hf(to.str(), m.config, m.weights);
  reinterpret_cast<float*>(m.weights.at("wte").bytes.data())[7] = -7e4f;
  EXPECT_EQ(
      refusal_of([&] { save_hf(to.str(), m.config, m.weights, {.stored = FileType::F16}); }),
      "[model.embed_tokens.weight] element 7 is -70000, which does not fit F16; hint: store it as BF16, F32 or F64");
  EXPECT_TRUE(same(load_hf(to.str()).weights, before));
  EXPECT_NE(refusal_of([&] { save_hf(fresh / "new", m.config, m.weights, {.stored = FileType::F16}); }), "no error");
  EXPECT_FALSE(std::filesystem::exists(fresh / "new"));
  save_hf(to.str(), m.config, m.weights, {.stored = FileType::BF16});
}

TEST(HfWeights, EveryVariantSurvivesSavingAndLoading) {
  for (const test::Variant& v : test::variants()) {
    const ModelConfig c = checked(v.config);
    const Family& family = family_named(c.family);
    if (family.stored_prefix.empty()) continue;
    Weights w;
    float next = 0;
    for (const ParamSpec& p : family.params(c)) {
      std::vector<float> x(std::size_t(p.elements()));
      for (float& e : x) e = next += 0.5f;
      w.emplace(p.name, Array::of<float>(x, p.sizes));
    }
    const Folder to;
    save_hf(to.str(), c, w);
    EXPECT_TRUE(same(load_hf(to.str()).weights, w)) << v.name;
  }
}

TEST(HfWeights, ThePrefixMayBeMissing) {
  for (const auto& [model, prefix] :
       {std::pair{"gpt2", "transformer."}, std::pair{"llama", "model."}, std::pair{"mixtral", "model."}}) {
    Copy copy(model);
    for (NamedTensor& t : copy.tensors)
      if (t.name.starts_with(prefix)) t.name = t.name.substr(std::string_view(prefix).size());
    EXPECT_EQ(copy.load(), "no error");
    EXPECT_TRUE(same(load_hf(copy.to.str()).weights, load_hf(hf_folder / model / "model").weights));
  }
}

TEST(HfWeights, BuffersOfOlderVersionsAreIgnored) {
  Copy copy("gpt2");
  const std::vector<std::byte> zeros(64 * 64);
  copy.tensors.push_back({"transformer.h.0.attn.bias", FileType::U8, {1, 1, 64, 64}, zeros});
  copy.tensors.push_back({"transformer.h.1.attn.masked_bias", FileType::F32, {}, std::span(zeros).first(4)});
  EXPECT_EQ(copy.load(), "no error");
}

TEST(HfWeights, AllThatIsWrongWithTheTensorsIsListed) {
  Copy copy("gpt2");
  copy.at("transformer.h.0.ln_1.bias").name = "transformer.h.0.ln_1.bais";
  copy.at("transformer.h.1.attn.c_attn.weight").shape = {192, 64};
  const std::vector<std::byte> zeros(64 * 8);
  copy.at("transformer.ln_f.weight") = {"transformer.ln_f.weight", FileType::I64, {64}, zeros};
  EXPECT_EQ(copy.load(),
            "[DIR] tensor 'transformer.h.0.ln_1.bias' [64] is missing\n"
            "[DIR] tensor 'transformer.h.1.attn.c_attn.weight' is F32 [192, 64] but config.json asks for [64, 192]\n"
            "[DIR] tensor 'transformer.ln_f.weight' is I64 [64], which is no floating-point type\n"
            "[DIR] tensor 'transformer.h.0.ln_1.bais' F32 [64] is no part of this model");
}

// Of files, not of config.json: transformers writes num_nextn_predict_layers without such weights.
TEST(HfWeights, LayersThatPredictFurtherTokensAreRefusedByName) {
  Copy copy("llama");
  const i64 layers = std::get<i64>(copy.json.find("num_hidden_layers")->value);
  const NamedTensor norm = copy.at("model.norm.weight");
  for (const char* name : {"eh_proj.weight", "enorm.weight", "input_layernorm.weight"})
    copy.tensors.push_back({fmt::format("model.layers.{}.{}", layers, name), norm.type, norm.shape, norm.bytes});
  EXPECT_EQ(
      copy.load(),
      fmt::format("[DIR] 3 tensors belong to layers from {} on, and config.json has {}: layers that predict further "
                  "tokens (MTP, num_nextn_predict_layers) are not supported; hint: remove them from the files: the "
                  "model without them is the same",
                  layers, layers));
}

TEST(HfWeights, EveryExpertIsATensorOfItsOwn) {
  const HfModel m = load_hf(data_folder / "mixtral/model", f64);
  EXPECT_EQ(m.weights.at("h.1.up").str(), "f64[4, 64, 96]");
  EXPECT_EQ(m.weights.at("h.1.down").str(), "f64[4, 96, 64]");
  const HfWeights files(data_folder / "mixtral/model");
  const std::vector<float> w3 = values<float>(files.at("model.layers.1.block_sparse_moe.experts.2.w3.weight"));
  EXPECT_EQ(m.weights.at("h.1.up").as<double>()[(2 * 64 + 5) * 96 + 7], double(w3[7 * 64 + 5]));
  Copy copy("mixtral");
  copy.at("model.layers.0.block_sparse_moe.experts.3.w2.weight").name =
      "model.layers.0.block_sparse_moe.experts.4.w2.weight";
  EXPECT_EQ(copy.load(),
            "[DIR] tensor 'model.layers.0.block_sparse_moe.experts.3.w2.weight' [64, 96] is missing\n"
            "[DIR] tensor 'model.layers.0.block_sparse_moe.experts.4.w2.weight' F32 [64, 96] is no part of this model");
}

TEST(HfWeights, ATiedHeadMayBeStoredButMustBeTheEmbedding) {
  Copy copy("gpt2");
  NamedTensor head = copy.at("transformer.wte.weight");
  head.name = "lm_head.weight";
  copy.tensors.push_back(head);
  EXPECT_EQ(copy.load(), "no error");
  std::vector<std::byte> other(head.bytes.begin(), head.bytes.end());
  other[3] ^= std::byte(0x80);
  copy.tensors.back().bytes = other;
  EXPECT_EQ(copy.load(),
            "[DIR] tensor 'lm_head.weight' differs from 'transformer.wte.weight', but config.json says that they are "
            "tied; hint: set tie_word_embeddings to false in config.json");
  copy.json.set("tie_word_embeddings", false);
  EXPECT_EQ(copy.load(), "no error");
  EXPECT_EQ(load_hf(copy.to.str()).weights.at("head").bytes, other);
}

TEST(HfWeights, WeightsToSaveMustBeTheModels) {
  const Folder to;
  HfModel m = load_hf(hf_folder / "llama/model");
  m.weights.emplace("h.9.q", Array::of<float>(std::vector<float>{1}, {1}));
  m.weights.erase("norm_f");
  m.weights.at("head").sizes = {64, 256};
  EXPECT_EQ(refusal_of([&] { save_hf(to.str(), m.config, m.weights); }),
            "[hugging face] parameter 'norm_f' [64] is missing\n"
            "[hugging face] parameter 'head' is f32[64, 256] but must be f32 or f64 [256, 64]\n"
            "[hugging face] parameter 'h.9.q' f32[1] is no part of this model");
  EXPECT_TRUE(std::filesystem::is_empty(to.str()));
}

TEST(HfWeights, DirectoriesWithoutAModelAreRefused) {
  const Folder to;
  const std::string here = to.str();
  EXPECT_EQ(refusal_of([&] { load_hf(to / "nowhere"); }),
            "[" + here + "/nowhere] is not a directory; hint: give one that holds model.safetensors and config.json");
  EXPECT_EQ(refusal_of([&] { load_hf(to.str()); }),
            "[" + here +
                "] holds neither model.safetensors nor model.safetensors.index.json; hint: are the weights still to be "
                "fetched?");
  EXPECT_EQ(refusal_of([&] { load_hf(hf_folder / "gpt2/model", i32); }),
            "[hugging face] weights cannot be read as i32; hint: use f32 or f64");
}

}  // namespace
}  // namespace stretto

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "models/variants.h"
#include "stretto/models/hf.h"
#include "support/files.h"
#include "support/message.h"

namespace stretto {
namespace {

const std::filesystem::path data_folder = std::filesystem::path(STRETTO_TEST_DATA) / "hf";

// config.json of a tested model, with one key changed.
Field changed(const char* model, const char* key, Field value) {
  Field f = read_json_file(data_folder / model / "model/config.json");
  f.set(key, std::move(value));
  return f;
}
// The message without the file and line of its first fault.
std::string refusal(const Field& f) {
  const std::string text = refusal_of([&] { parse_hf_config(f); });
  return text == "no error" ? text : text.substr(text.find("] ") + 2);
}
std::string refusal(const char* model, const char* key, Field value) {
  return refusal(changed(model, key, std::move(value)));
}

TEST(HfConfig, Gpt2) {
  const HfConfig h = read_hf_config(data_folder / "gpt2/model");
  EXPECT_EQ(h.stored, FileType::F32);
  EXPECT_EQ(h.config, complete({.layers = 2, .width = 64, .heads = 4, .context = 64, .vocab = 256}));
}

TEST(HfConfig, Llama) {
  const HfConfig h = read_hf_config(data_folder / "llama/model/config.json");
  EXPECT_EQ(h.config, complete({.family = "llama",
                                .layers = 3,
                                .width = 64,
                                .heads = 4,
                                .kv_heads = 2,
                                .ff = 160,
                                .context = 64,
                                .vocab = 256,
                                .rope_base = 500000}));
}

TEST(HfConfig, OldAndNewKeysMeanTheSame) {
  for (const char* model : {"gpt2", "llama", "mixtral"}) {
    const HfConfig now = read_hf_config(data_folder / model / "model");
    const HfConfig then = read_hf_config(data_folder / "config_v4" / (std::string(model) + ".json"));
    EXPECT_EQ(now.config, then.config) << model;
    EXPECT_EQ(now.stored, then.stored);
  }
}

TEST(HfConfig, EveryVariantSurvivesWritingAndReading) {
  for (const test::Variant& v : test::variants()) {
    ModelConfig c = checked(v.config);
    if (c.family == "mlp") continue;
    c.pad_vocab = 1;  // a matter of storage, not of the model
    c.attention_dropout = 0.25;
    for (const FileType type : {FileType::F32, FileType::F64, FileType::BF16, FileType::F16}) {
      const std::string text = write_json(hf_config(c, type), 2);
      const HfConfig back = parse_hf_config(read_json(text, "config.json"));
      EXPECT_EQ(back.config, c) << v.name << "\n" << text;
      EXPECT_EQ(back.stored, type);
    }
  }
}

TEST(HfConfig, PresetsSurviveWritingAndReading) {
  for (const Preset& p : presets()) {
    ModelConfig c = checked(p.config);
    if (c.family == "mlp") continue;
    c.pad_vocab = 1;
    if (c.family == "mixtral") c.capacity = 0, c.balance_pooled = true;  // there is no place for other ones
    EXPECT_EQ(parse_hf_config(hf_config(c, FileType::F32)).config, c) << p.name;
  }
}

TEST(HfConfig, RopeParametersWinOverOlderKeys) {
  Field f = changed("llama", "rope_theta", 123.0);
  EXPECT_EQ(parse_hf_config(f).config.rope_base, 500000);
  f.set("rope_scaling.rope_type", "dynamic");
  EXPECT_EQ(parse_hf_config(f).config.rope_scaling.kind, RopeScaling::Kind::none);
  f.set("rope_parameters", Field());
  EXPECT_EQ(refusal(f),
            "key 'rope_scaling.rope_type' is \"dynamic\" but no such rotary scaling is supported; hint: supported "
            "are default, linear, llama3, yarn and longrope");
  f.set("rope_scaling", Field());
  EXPECT_EQ(parse_hf_config(f).config.rope_base, 123);
}

TEST(HfConfig, StretchedPositions) {
  Field f = changed("llama", "rope_parameters", Field());
  f.set("rope_theta", 10000.0);
  f.set("rope_scaling", read_json(R"({"type": "linear", "factor": 4.0})", "x"));
  EXPECT_EQ(parse_hf_config(f).config.rope_scaling, (RopeScaling{.kind = RopeScaling::Kind::linear, .factor = 4}));
  f.set("rope_scaling",
        read_json(R"({"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                      "original_max_position_embeddings": 8192})",
                  "x"));
  EXPECT_EQ(parse_hf_config(f).config.rope_scaling, (RopeScaling{RopeScaling::Kind::llama3, 32, 1, 4, 8192}));
  f.set("rope_scaling", read_json(R"({"rope_type": "llama3", "factor": 32.0})", "x"));
  EXPECT_EQ(refusal(f),
            "key 'rope_scaling.low_freq_factor' is missing\n"
            "[x:1] key 'rope_scaling.high_freq_factor' is missing\n"
            "[x:1] key 'rope_scaling.original_max_position_embeddings' is missing");
}

TEST(HfConfig, LongropeSaysHowLongContextsWereInTheTableOrBesideIt) {
  const std::filesystem::path phi3 = data_folder / "../hf_models/phi3_longrope/config.json";
  const RopeScaling now = parse_hf_config(read_json_file(phi3)).config.rope_scaling;
  EXPECT_EQ(now, (RopeScaling{.kind = RopeScaling::Kind::longrope,
                              .factor = 2,
                              .original_context = 16,
                              .short_factor = {1, 1.5},
                              .long_factor = {1.3, 4}}));
  Field old = read_json_file(phi3);
  old.set("rope_parameters", Field());
  old.set("rope_theta", 100.0);
  old.set("rope_scaling", read_json(R"({"type": "su", "short_factor": [1.0, 1.5], "long_factor": [1.3, 4.0]})", "x"));
  EXPECT_EQ(parse_hf_config(old).config.rope_scaling, now);
  old.set("rope_scaling.long_factor", Field::Array{1.0});
  EXPECT_THAT(refusal_of([&] { parse_hf_config(old); }),
              testing::HasSubstr("model.rope_scaling] long_factor has 1 numbers; hint: use 2 positive ones"));
}

TEST(HfConfig, OlderFilesSayHowOftenALayerSeesAll) {
  Field f = read_json_file(data_folder / "../hf_models/gemma3/config.json");
  f.set("layer_types", Field());
  EXPECT_EQ(parse_hf_config(f).config.pattern, "wwwwwf");
  f.set("sliding_window_pattern", 3);
  EXPECT_EQ(parse_hf_config(f).config.pattern, "wwf");
  f.set("sliding_window_pattern", 0);
  EXPECT_THAT(refusal_of([&] { parse_hf_config(f); }), testing::HasSubstr("key 'sliding_window_pattern' is 0"));
}

// Mixtures of layers with and without positions, in chunks or not.
TEST(HfConfig, LayersOfLlama4) {
  Field f = read_json_file(data_folder / "../hf_models/llama4/config.json");
  const ModelConfig c = parse_hf_config(f).config;
  EXPECT_EQ(c.pattern, "cccn");
  EXPECT_EQ(c.sparse, "de");
  EXPECT_EQ(c.chunk, 5);
  for (const char* key : {"layer_types", "no_rope_layers", "moe_layers"}) f.set(key, Field());
  EXPECT_EQ(parse_hf_config(f).config, c) << "by their habits";
  f.set("attn_temperature_tuning", 4);
  EXPECT_EQ(parse_hf_config(f).config.temperature_floor, 3);
  f.set("attn_temperature_tuning", 0);
  EXPECT_EQ(parse_hf_config(f).config.temperature_floor, 0);
  const std::string chunk = "chunked_attention";
  f.set("layer_types", Field::Array{chunk, chunk, chunk, chunk});
  EXPECT_THAT(refusal_of([&] { parse_hf_config(f); }),
              testing::HasSubstr("layer 3 is 'chunked_attention' without positions; hint: full_attention and, with"));
}

TEST(HfConfig, MissingKeysMeanWhatTheModelTypeSays) {
  const auto parse = [](const char* text) { return parse_hf_config(read_json(text, "config.json")).config; };
  const ModelConfig g = parse(R"({"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12,
                                  "n_positions": 1024, "n_ctx": 1024, "vocab_size": 50257})");
  EXPECT_EQ(g.tied, true);
  EXPECT_EQ(g.dropout, 0.1);
  EXPECT_EQ(g.attention_dropout, 0.1);
  EXPECT_EQ(g.embedding_dropout, 0.1);
  EXPECT_EQ(g.ff, 3072);
  const ModelConfig l = parse(R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64,
      "num_attention_heads": 4, "intermediate_size": 128, "max_position_embeddings": 32, "vocab_size": 100})");
  EXPECT_EQ(l.tied, false);
  EXPECT_EQ(l.kv_heads, 4);
  EXPECT_EQ(l.head_dim, 16);
  EXPECT_EQ(l.norm_eps, 1e-6);
  EXPECT_EQ(l.rope_base, 10000);
  const ModelConfig q = parse(R"({"model_type": "qwen2", "num_hidden_layers": 2, "hidden_size": 64, "head_dim": null,
      "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128, "max_position_embeddings": 32,
      "vocab_size": 100, "sliding_window": 16, "use_sliding_window": false, "max_window_layers": 1})");
  EXPECT_EQ(q.norm_eps, 1e-6);
  EXPECT_EQ(q.rope_base, 10000);
  EXPECT_TRUE(q.qkv_bias);
  EXPECT_FALSE(q.out_bias);
  const ModelConfig m = parse(R"({"model_type": "mixtral", "num_hidden_layers": 2, "hidden_size": 64,
      "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128, "max_position_embeddings": 32,
      "vocab_size": 100, "num_local_experts": 4})");
  EXPECT_EQ(m.norm_eps, 1e-5);
  EXPECT_EQ(m.rope_base, 1e6);
  const std::string mistral = R"({"model_type": "mistral", "num_hidden_layers": 2, "hidden_size": 64,
      "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128, "max_position_embeddings": 32,
      "vocab_size": 100)";
  EXPECT_EQ(parse((mistral + ", \"sliding_window\": null}").c_str()).norm_eps, 1e-6);
  EXPECT_EQ(parse((mistral + ", \"sliding_window\": null}").c_str()).window, 0);
  EXPECT_EQ(parse((mistral + "}").c_str()).window, 4096);
  EXPECT_EQ(parse((mistral + ", \"sliding_window\": 16}").c_str()).window, 16);
  EXPECT_EQ(refusal_of([&] { parse(R"({"model_type": "qwen3", "hidden_size": 64, "num_attention_heads": 4})"); }),
            "[config.json:1] key 'num_hidden_layers' is missing\n"
            "[config.json:1] key 'intermediate_size' is missing\n"
            "[config.json:1] key 'max_position_embeddings' is missing\n"
            "[config.json:1] key 'vocab_size' is missing\n"
            "[config.json:1] key 'num_key_value_heads' is missing\n"
            "[config.json:1] key 'head_dim' is missing");
}

TEST(HfConfig, WhatWouldChangeTheMathematicsIsRefusedByName) {
  EXPECT_EQ(refusal("llama", "sliding_window", 32),
            "key 'sliding_window' is 32 but this type of model has no sliding window; hint: with null every "
            "token sees all before it");
  EXPECT_EQ(refusal("llama", "hidden_act", "xielu"),
            "key 'hidden_act' is \"xielu\" but no such activation is supported; hint: supported are gelu_new, "
            "gelu_pytorch_tanh, gelu_fast, gelu, gelu_python, relu, silu, swish");
  EXPECT_THAT(refusal("llama", "rope_parameters.rope_type", "longrope"),
              testing::StartsWith("key 'rope_parameters.short_factor' is missing\n"));
  EXPECT_EQ(refusal("llama", "rope_parameters.partial_rotary_factor", 0.5),
            "key 'rope_parameters.partial_rotary_factor' is 0.5 but only whole heads can be turned");
  EXPECT_THAT(refusal("llama", "layer_types", Field::Array{"full_attention", "full_attention", "sliding_attention"}),
              testing::EndsWith("this type of model has no sliding window"));
  EXPECT_EQ(refusal("llama", "layer_types", Field::Array{"full_attention", "full_attention"}),
            "key 'layer_types' is [\"full_attention\", \"full_attention\"] but it names 2 layers of 3");
  EXPECT_EQ(refusal("gpt2", "scale_attn_by_inverse_layer_idx", true),
            "key 'scale_attn_by_inverse_layer_idx' is true but only false is supported; hint: it would change the "
            "results");
  EXPECT_EQ(refusal("gpt2", "scale_attn_weights", false),
            "key 'scale_attn_weights' is false but only true is supported; hint: it would change the results");
  EXPECT_EQ(refusal("gpt2", "add_cross_attention", true),
            "key 'add_cross_attention' is true but only false is supported; hint: it would change the results");
  EXPECT_EQ(refusal("llama", "quantization_config", read_json(R"({"bits": 4})", "x")),
            "key 'quantization_config' is a table but weights of fewer than 16 bits are not supported; hint: save them "
            "as bfloat16 first");
  EXPECT_EQ(refusal("llama", "logit_scale", Field()), "no error");
  Field qwen = read_json_file(std::filesystem::path(STRETTO_TEST_DATA) / "hf_relatives/qwen2/config.json");
  qwen.set("use_mrope", false);
  EXPECT_EQ(refusal(qwen), "no error");
  qwen.set("use_mrope", true);
  EXPECT_EQ(refusal(qwen), "key 'use_mrope' is true but only false is supported; hint: it would change the results");
  EXPECT_EQ(refusal("gpt2", "dtype", "float8_e4m3fn"),
            "key 'dtype' is \"float8_e4m3fn\" but no such type is supported; hint: supported are float32, float64, "
            "bfloat16 and float16");
  EXPECT_THAT(refusal("llama", "model_type", "bert"),
              testing::StartsWith("key 'model_type' is \"bert\" but no such model is supported; all of its keys and "
                                  "tensors are those of 'llama'; hint: if it computes what 'llama' computes, "
                                  "--model.hf_as=llama of a run reads it as that, and --hf-as=llama of convert, eval and "
                                  "generate; supported are gpt2, "));
  Field images = read_json(R"({"model_type": "llama4", "text_config": {"model_type": "llama4_text"}})", "config.json");
  EXPECT_EQ(refusal_of([&] { parse_hf_config(images); }),
            "[config.json:1] key 'model_type' is \"llama4\", a model of more than text; hint: its text model alone "
            "(\"llama4_text\") can be read: load it in transformers and save it by itself");
  EXPECT_EQ(refusal("mixtral", "use_cache", true), "no error");
  EXPECT_EQ(refusal("mixtral", "router_jitter_noise", 0.1),
            "key 'router_jitter_noise' is 0.1 but noise of the router is not supported");
}

const std::filesystem::path tiny_models = std::filesystem::path(STRETTO_TEST_DATA) / "hf_models";

// A directory with the files of a model, of another model type.
class Renamed {
 public:
  Renamed(const char* model, const std::function<void(Field&)>& change) {
    std::filesystem::copy(tiny_models / model, folder_ / "model");
    Field f = read_json_file(tiny_models / model / "config.json");
    f.set("model_type", "another");
    change(f);
    std::filesystem::permissions(folder_ / "model/config.json", std::filesystem::perms::owner_all);
    folder_.write("model/config.json", write_json(f));
  }
  std::filesystem::path path() const { return folder_ / "model"; }

 private:
  test::Folder folder_;
};

TEST(HfConfig, AModelUnderAnotherNameIsReadAsWhatItIs) {
  for (const char* model : {"llama3", "qwen3", "olmo2", "qwen3_moe"}) {
    const Renamed other(model, [](Field&) {});
    const HfModel as_it_is = load_hf(tiny_models / model);
    const std::string type = std::string(model) == "llama3" ? "llama" : model;
    const HfModel read = load_hf(other.path(), f32, type);
    EXPECT_EQ(read.config, as_it_is.config) << model;
    ASSERT_EQ(read.weights.size(), as_it_is.weights.size());
    for (const auto& [name, array] : as_it_is.weights) EXPECT_EQ(read.weights.at(name).bytes, array.bytes) << name;
    EXPECT_THAT(
        refusal_of([&] { load_hf(other.path()); }),
        testing::HasSubstr("all of its keys and tensors are those of '" + type + "'; hint: if it computes what"));
  }
  const Renamed other("llama3", [](Field&) {});
  EXPECT_THAT(refusal_of([&] { read_hf_config(other.path(), "lama"); }),
              testing::StartsWith("[hf_as] there is no model type 'lama'; hint: did you mean 'llama'? supported are "));
  EXPECT_THAT(refusal_of([&] { load_hf(other.path(), f32, "qwen3"); }),
              testing::HasSubstr("q_norm.weight' [4] is missing"));
}

TEST(HfConfig, ARefusedTypeSaysWhatIsMissing) {
  const Renamed keys("llama3", [](Field& f) { f.set("hidden_scale", 3.5), f.set("clip_qkv", 8.0); });
  EXPECT_THAT(refusal_of([&] { load_hf(keys.path()); }),
              testing::HasSubstr("no such model is supported; from 'llama', the closest, it differs in this: key "
                                 "'hidden_scale' is unknown; key 'clip_qkv' is unknown; hint: a model that is one of "
                                 "these under another name can be read with --model.hf_as=TYPE"));
  const Renamed tensors("llama3", [](Field& f) { f.set("intermediate_size", 23); });
  EXPECT_THAT(refusal_of([&] { load_hf(tensors.path()); }),
              testing::AllOf(testing::HasSubstr("tensor 'model.layers.0.mlp.gate_proj.weight' is F32 [24, 16] but config.json asks for [23, 16]"),
                             testing::HasSubstr("and 2 more")));
}

TEST(HfConfig, RoutersThatAreNotThereAreRefusedByName) {
  const auto tiny = [](const char* model, const char* key, Field value) {
    Field f = read_json_file(std::filesystem::path(STRETTO_TEST_DATA) / "hf_models" / model / "config.json");
    f.set(key, std::move(value));
    return refusal(f);
  };
  for (const char* model : {"gpt_oss", "llama4", "olmoe", "qwen3_moe", "granitemoe"}) {
    EXPECT_EQ(tiny(model, "router_jitter_noise", 0.0), "no error") << model;
    EXPECT_EQ(tiny(model, "router_jitter_noise", 0.01),
              "key 'router_jitter_noise' is 0.01 but noise of the router is not supported")
        << model;
  }
  EXPECT_EQ(tiny("deepseek_v3", "scoring_func", "sigmoid"), "no error");
  EXPECT_EQ(tiny("deepseek_v3", "scoring_func", "softmax"),
            "key 'scoring_func' is \"softmax\" but only sigmoid is supported");
  EXPECT_EQ(tiny("kimi_k2", "topk_method", "greedy"), "key 'topk_method' is \"greedy\" but only noaux_tc is supported");
  EXPECT_EQ(tiny("glm4_moe", "scoring_func", "tanh"), "key 'scoring_func' is \"tanh\" but only sigmoid is supported");
  EXPECT_EQ(tiny("deepseek_v2", "scoring_func", "sigmoid"),
            "key 'scoring_func' is \"sigmoid\" but only softmax is supported");
  EXPECT_EQ(tiny("gpt_oss", "swiglu_alpha", 1.5), "key 'swiglu_alpha' is 1.5 but only 1.702 is supported");
  EXPECT_THAT(tiny("llama4", "no_rope_layers", Field::Array{i64(1), i64(0)}),
              testing::EndsWith("but it names 2 layers of 4"));
}

TEST(HfConfig, WrongValuesAreRefusedWithFileAndLine) {
  EXPECT_EQ(refusal_of([] { parse_hf_config(read_json("{}", "config.json")); }),
            "[config.json:1] key 'model_type' is missing; hint: is it the config.json of a model that transformers has "
            "saved?");
  EXPECT_EQ(refusal_of([] { parse_hf_config(read_json(R"({"model_type": 5, "n_layer": 2})", "config.json")); }),
            "[config.json:1] key 'model_type' is an integer and not text; hint: is it the config.json of a model that "
            "transformers has saved?");
  EXPECT_EQ(refusal_of([] { parse_hf_config(read_json("[]", "config.json")); }),
            "[config.json:1] the document is [] but must be a table");
  const std::string impossible = refusal_of([] { parse_hf_config(changed("gpt2", "n_head", 5)); });
  EXPECT_TRUE(impossible.ends_with(
      "config.json: model.heads] 5 heads do not divide width 64; hint: use 4 or 8 heads, or width 65"))
      << impossible;
  EXPECT_EQ(refusal("gpt2", "n_layer", "two"), "key 'n_layer' is \"two\" but must be a whole number");
}

TEST(HfConfig, OddValuesGiveAValidConfigOrAMessage) {
  const std::vector<Field> odd{Field(),
                               true,
                               -1,
                               0,
                               1,
                               i64(1) << 62,
                               -(i64(1) << 62),
                               -0.5,
                               1e300,
                               "",
                               "x",
                               "gpt2",
                               Field::Array{},
                               Field::Table{},
                               Field::Array{1, "two"},
                               Field::Table{{"rope_type", 3}}};
  std::vector<std::filesystem::path> models{data_folder / "gpt2/model", data_folder / "llama/model"};
  for (const auto& entry : std::filesystem::directory_iterator(data_folder / "../hf_models"))
    if (entry.is_directory()) models.push_back(entry.path());
  for (const std::filesystem::path& model : models) {
    const Field good = read_json_file(model / "config.json");
    for (const Member& m : *good.table())
      for (const Field& value : odd) {
        Field f = good;
        f.set(m.key, value);
        try {
          EXPECT_TRUE(validate(parse_hf_config(f).config).empty()) << m.key << " = " << value.str();
        } catch (const Error& e) {
          EXPECT_EQ(e.kind(), Error::Kind::input) << m.key << " = " << value.str() << ": " << e.what();
        }
      }
  }
}

TEST(HfConfig, WhatNoModelTypeExpressesIsNotWritten) {
  const ModelConfig base{.family = "llama", .width = 64, .heads = 4};
  const auto say = [&](auto change) {
    ModelConfig c = base;
    change(c);
    return refusal_of([&] { hf_config(c, FileType::F32); });
  };
  EXPECT_EQ(say([](ModelConfig& c) { c.qkv_bias = c.mlp_bias = true; }),
            "[hugging face] model type qwen2 has no mlp_bias; hint: leave mlp_bias out");
  EXPECT_EQ(say([](ModelConfig& c) { c.out_bias = true; }),
            "[hugging face] no model type has qkv_bias false, out_bias true and qk_norm false; hint: make out_bias the "
            "same as qkv_bias");
  EXPECT_EQ(say([](ModelConfig& c) { c.family = "mlp"; }), "[hugging face] there is no model type for family 'mlp'");
  EXPECT_EQ(refusal_of([&] { hf_config(base, FileType::I32); }),
            "[hugging face] weights cannot be kept in I32; hint: use F32, F64, BF16 or F16");
}

}  // namespace
}  // namespace stretto

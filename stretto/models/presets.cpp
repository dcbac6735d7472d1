#include "stretto/base/text.h"
#include "stretto/models/config.h"

namespace stretto {
namespace {

constexpr RopeScaling llama32{RopeScaling::Kind::llama3, 32, 1, 4, 8192};

const std::vector<Preset>& table() {
  static const std::vector<Preset> all{
      {"gpt2-tiny", "0.8M, bytes; learns in a minute", {.layers = 4, .width = 128, .heads = 4, .context = 128}},
      {"reference",
       "the case that speed is measured on",
       {.layers = 4, .width = 512, .heads = 8, .context = 256, .vocab = 8192, .tied = false}},
      {"gpt2", "124M", {.layers = 12, .width = 768, .heads = 12, .context = 1024, .vocab = 50257, .pad_vocab = 128}},
      {"gpt2-medium",
       "355M",
       {.layers = 24, .width = 1024, .heads = 16, .context = 1024, .vocab = 50257, .pad_vocab = 128}},
      {"gpt2-large",
       "774M",
       {.layers = 36, .width = 1280, .heads = 20, .context = 1024, .vocab = 50257, .pad_vocab = 128}},
      {"gpt2-xl",
       "1.6B",
       {.layers = 48, .width = 1600, .heads = 25, .context = 1024, .vocab = 50257, .pad_vocab = 128}},
      {"gpt3-175b",
       "175B",
       {.layers = 96, .width = 12288, .heads = 96, .context = 2048, .vocab = 50257, .pad_vocab = 128}},
      {"llama-tiny",
       "0.8M, bytes",
       {.family = "llama", .layers = 4, .width = 128, .heads = 4, .kv_heads = 2, .context = 128, .tied = true}},
      {"llama-1b",
       "1.2B, the shape of Llama 3.2 1B",
       {.family = "llama",
        .layers = 16,
        .width = 2048,
        .heads = 32,
        .kv_heads = 8,
        .ff = 8192,
        .context = 131072,
        .vocab = 128256,
        .tied = true,
        .rope_base = 500000,
        .rope_scaling = llama32}},
      {"llama-2-7b",
       "6.7B",
       {.family = "llama", .layers = 32, .width = 4096, .heads = 32, .ff = 11008, .context = 4096, .vocab = 32000}},
      {"llama-3-8b",
       "8.0B",
       {.family = "llama",
        .layers = 32,
        .width = 4096,
        .heads = 32,
        .kv_heads = 8,
        .ff = 14336,
        .context = 8192,
        .vocab = 128256,
        .rope_base = 500000}},
      {"llama-3-70b",
       "71B",
       {.family = "llama",
        .layers = 80,
        .width = 8192,
        .heads = 64,
        .kv_heads = 8,
        .ff = 28672,
        .context = 8192,
        .vocab = 128256,
        .rope_base = 500000}},
      {"qwen2.5-0.5b",
       "0.5B",
       {.family = "llama",
        .layers = 24,
        .width = 896,
        .heads = 14,
        .kv_heads = 2,
        .ff = 4864,
        .context = 32768,
        .vocab = 151936,
        .tied = true,
        .norm_eps = 1e-6,
        .rope_base = 1000000,
        .qkv_bias = true}},
      {"qwen3-0.6b",
       "0.6B",
       {.family = "llama",
        .layers = 28,
        .width = 1024,
        .heads = 16,
        .kv_heads = 8,
        .head_dim = 128,
        .ff = 3072,
        .context = 40960,
        .vocab = 151936,
        .tied = true,
        .norm_eps = 1e-6,
        .rope_base = 1000000,
        .qk_norm = true}},
      {"mixtral-tiny",
       "2.6M, bytes; 2 of 8 experts per token",
       {.family = "mixtral",
        .layers = 4,
        .width = 128,
        .heads = 4,
        .kv_heads = 2,
        .ff = 192,
        .context = 128,
        .tied = true,
        .experts = 8,
        .capacity = 1.25,
        .balance = 0.01}},
      {"mixtral-8x7b",
       "46.7B, of which a token uses 12.9B",
       {.family = "mixtral",
        .layers = 32,
        .width = 4096,
        .heads = 32,
        .kv_heads = 8,
        .ff = 14336,
        .context = 32768,
        .vocab = 32000,
        .rope_base = 1000000,
        .experts = 8}},
      {"mlp-tiny", "0.3M, bytes; sees one token at a time", {.family = "mlp", .layers = 2, .context = 128}},
  };
  return all;
}

}  // namespace

std::span<const Preset> presets() { return table(); }

const ModelConfig& preset(std::string_view name) {
  std::vector<std::string> names;
  for (const Preset& p : table()) {
    if (p.name == name) return p.config;
    names.emplace_back(p.name);
  }
  const auto near = nearest(name, names);
  throw Error("model.preset", "there is no preset '{}'", name)
      .hint("{}the presets are {}", near ? fmt::format("did you mean '{}'? ", *near) : "", join(names, ", "));
}

}  // namespace stretto

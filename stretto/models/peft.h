// Adapters as PEFT keeps them: adapter_config.json and adapter_model.safetensors in a directory.
//
//   PeftAdapter a = load_peft("adapter", config);      // of that model
//   save_peft("out", {.config = config, .weights = trained, .base = "Qwen/Qwen3-0.6B"});
//
// Read: LoRA of one rank and one alpha, without biases. Keys that ask for more are refused by name.
#pragma once
#include <filesystem>
#include <string>

#include "stretto/models/lora.h"

namespace stretto {

inline constexpr std::string_view peft_config_name = "adapter_config.json";
inline constexpr std::string_view peft_weights_name = "adapter_model.safetensors";
bool is_peft(const std::filesystem::path& directory);

struct PeftAdapter {
  Lora lora;
  Weights weights;   // "h.0.q.lora_a", ...
  std::string base;  // what the adapter belongs to, as the file says: a directory, or a name on the hub
};

// What adapter_config.json says; `lora.params` stays empty.
PeftAdapter read_peft_config(const std::filesystem::path& directory);
// With the weights that the file has tensors for, and nothing of the values: what a model needs to be traced.
PeftAdapter open_peft(const std::filesystem::path& directory, const ModelConfig& base);
PeftAdapter load_peft(const std::filesystem::path& directory, const ModelConfig& base, DType dtype = f32);

struct PeftExport {
  const ModelConfig& config;  // with its `lora`
  const Weights& weights;     // adapters; others are passed over
  std::string base = {};
  FileType stored = FileType::F32;
};
void check_peft(const ModelConfig&);  // refuses what PEFT has no names for
void save_peft(const std::filesystem::path& directory, const PeftExport&);

}  // namespace stretto

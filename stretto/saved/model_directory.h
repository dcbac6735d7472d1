// A model wherever it lies: a Hugging Face directory, a checkpoint, or a run directory (its newest checkpoint).
//
//   StoredModel m = load_model("runs/tales");
//   export_hf("export", m, {.stored = FileType::BF16});
//   import_checkpoint("imported", load_model("gpt2"));
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "stretto/checkpoint/checkpoint.h"
#include "stretto/models/peft.h"

namespace stretto {

struct StoredModel {
  enum class Kind { hugging_face, checkpoint } kind = Kind::hugging_face;
  std::filesystem::path path;  // of the HF directory or the checkpoint
  std::filesystem::path base;  // of an adapter: the directory of its model, which may have the tokenizer alone
  ModelConfig config;
  Weights weights;                      // f32, or f64 where a file has them; adapters are merged into them
  std::optional<PeftAdapter> adapter;   // ... and stand here too
  std::vector<Snapshot::Extra> extras;  // tokenizer.json and its like
  std::vector<std::string> notes;       // damaged checkpoints that were passed over

  void merge_adapters();  // those that the config has and that stand among the weights
};

// An Error says what is missing, surplus, misshapen or damaged, and what the directory could have been.
struct LoadOptions {
  std::filesystem::path base = {};  // of a directory of PEFT's: the model it belongs to; "": the one that it names
  bool ema = false;                 // of a checkpoint: the running averages of train.ema
  std::string hf_as = {};           // of a Hugging Face directory: the model type that its own counts as
};
StoredModel load_model(const std::filesystem::path& directory, const LoadOptions& = {});

struct ExportOptions {
  std::optional<FileType> stored = {};  // none: as the weights are
  u64 shard_bytes = 5'000'000'000;
};
void export_hf(const std::filesystem::path& directory, const StoredModel&, const ExportOptions& = {});
// The adapters alone, in PEFT's format. `base`: what the file says that they belong to.
void export_peft(const std::filesystem::path& directory, const StoredModel&, const std::string& base,
                 FileType stored = FileType::F32);
void import_checkpoint(const std::filesystem::path& path, const StoredModel&);

// Tokens that end a text, as generation_config.json says, else the tokenizer's own; without either none.
std::vector<std::int32_t> end_ids(const std::vector<Snapshot::Extra>&);

// Files beside the weights that belong to the model, as found in a Hugging Face directory. What config.json says of
// bos_token_id and eos_token_id becomes a generation_config.json where there is none: exports write both.
std::vector<Snapshot::Extra> extras_of(const std::filesystem::path& hf_directory);

}  // namespace stretto

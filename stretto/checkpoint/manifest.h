// manifest.json of a checkpoint: what belongs to it, with the hash of every file and tensor, and of itself. It is
// written last: a directory without a valid one is no checkpoint. Version 1 has whole tensors only; version 2 has some
// of them in fragments, each with its place.
//
//   Manifest m = parse_manifest(text, "step-00000100/manifest.json");
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/base/id.h"
#include "stretto/checkpoint/fragment.h"

namespace stretto {

struct ManifestTensor {
  std::string name;
  u64 hash = 0;                           // XXH3 of its bytes
  std::optional<Fragment> fragment = {};  // none: the whole tensor
  bool operator==(const ManifestTensor&) const = default;
};
struct ManifestFile {
  std::string name;
  u64 bytes = 0, hash = 0;
  std::vector<ManifestTensor> tensors = {};  // of a shard
  bool operator==(const ManifestFile&) const = default;
};
struct Manifest {
  i64 step = 0;
  u64 seed = 0;
  std::string config;                // RUN.toml, resolved
  std::string optimizer;             // "" when there is no state
  std::vector<std::string> states;   // of the optimizer, per parameter
  std::vector<ManifestFile> shards;  // safetensors
  std::vector<ManifestFile> extras;  // carried along, e.g. tokenizer.json
  bool operator==(const Manifest&) const = default;
};

constexpr std::string_view manifest_name = "manifest.json";
// What may be carried along. Nothing else: an export puts these beside the weights, under these names.
constexpr std::array<std::string_view, 9> extra_names{
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",  "vocab.json",
    "merges.txt",     "tokenizer.model",       "generation_config.json",  "chat_template.jinja"};
bool is_extra_name(std::string_view);
std::string manifest_text(const Manifest&);
// Tensors of which something is missing, or there twice: "'parameter/x': its fragments overlap".
std::vector<std::string> incomplete(const Manifest&);
// `file` is for messages. Throws Error for whatever is not a whole, unchanged manifest of a version that is known.
Manifest parse_manifest(std::string_view text, std::string_view file);

}  // namespace stretto

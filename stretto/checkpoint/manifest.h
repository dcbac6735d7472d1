// manifest.json of a checkpoint: what belongs to it, with the hash of every file and tensor, and of itself. It is
// written last: a directory without a valid one is no checkpoint.
//
//   Manifest m = parse_manifest(text, "step-00000100/manifest.json");
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "stretto/base/id.h"

namespace stretto {

struct ManifestTensor {
  std::string name;
  u64 hash = 0;  // XXH3 of its bytes
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
std::string manifest_text(const Manifest&);
// `file` is for messages. Throws Error for whatever is not a whole, unchanged manifest of a version that is known.
Manifest parse_manifest(std::string_view text, std::string_view file);

}  // namespace stretto

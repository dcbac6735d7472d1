// Checkpoints: parameters, optimizer state, step, seed and config in a directory of safetensors shards with a manifest.
// Names and shapes are the logical ones: nothing in it tells which layout wrote it.
//
//   write_checkpoint("run/checkpoints/step-00000100", snapshot);
//   Checkpoint c("run/checkpoints/step-00000100");       // every hash is checked
//   Array wte = c.parameter("wte");
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/base/array.h"
#include "stretto/checkpoint/manifest.h"
#include "stretto/formats/safetensors.h"

namespace stretto {

struct Snapshot {
  i64 step = 0;
  u64 seed = 0;
  std::string config, optimizer;
  std::vector<std::string> states;
  struct Tensor {
    std::string name;
    Array value;
  };
  std::vector<Tensor> tensors;  // named by parameter_tensor and state_tensor
  struct Extra {
    std::string name, text;
  };
  std::vector<Extra> extras;
  u64 bytes() const;
};
std::string parameter_tensor(std::string_view parameter);                      // "parameter/wte"
std::string state_tensor(std::string_view state, std::string_view parameter);  // "state/m/wte"

class Checkpoint {
 public:
  // Error says what is missing, cut off or changed.
  explicit Checkpoint(const std::filesystem::path& directory);
  const std::filesystem::path& path() const { return path_; }
  const Manifest& manifest() const { return manifest_; }
  const TensorMap& tensors() const { return tensors_; }
  std::vector<std::string> parameters() const;  // names, sorted
  Array parameter(std::string_view name) const;
  Array state(std::string_view which, std::string_view parameter) const;

 private:
  std::filesystem::path path_;
  Manifest manifest_;
  std::vector<SafeTensors> shards_;
  TensorMap tensors_;  // spans into the shards
};

// A new directory that appears whole or not at all; one of that name is replaced in one step.
void write_checkpoint(const std::filesystem::path& path, const Snapshot&, u64 shard_bytes = u64(1) << 30);

// In a directory of checkpoints, step-<number> each.
std::string checkpoint_name(i64 step);                                                      // "step-00000100"
std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& directory);  // newest first
void prune_checkpoints(const std::filesystem::path& directory, int keep, i64 newest);       // see keep in RUN.toml
bool is_checkpoint(const std::filesystem::path& directory);                                 // has a manifest

struct Newest {
  std::optional<Checkpoint> checkpoint;  // the newest that is whole
  std::vector<std::string> damaged;      // what is wrong with those after it
};
Newest newest_checkpoint(const std::filesystem::path& directory);

}  // namespace stretto

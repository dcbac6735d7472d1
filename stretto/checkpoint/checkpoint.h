// Checkpoints: parameters, optimizer state, step, seed and config in a directory of safetensors shards with a manifest.
// Names and shapes are the logical ones. What one process has written tells nothing of its layout; what several have
// written may have tensors in fragments, and reads the same.
//
//   write_checkpoint("run/checkpoints/step-00000100", snapshot);
//   Checkpoint c("run/checkpoints/step-00000100");       // every hash is checked
//   Array wte = c.parameter("wte");
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/base/array.h"
#include "stretto/checkpoint/manifest.h"
#include "stretto/formats/atomic_directory.h"
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
    std::optional<Fragment> fragment = {};  // none: the whole
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
  const TensorMap& tensors() const { return tensors_; }  // without bytes where a tensor lies in fragments
  std::vector<std::string> parameters() const;           // names, sorted
  Array parameter(std::string_view name) const;
  Array state(std::string_view which, std::string_view parameter) const;

 private:
  std::filesystem::path path_;
  Manifest manifest_;
  struct StoredFragment {
    Fragment fragment;
    std::span<const std::byte> bytes;
  };
  void add(const std::filesystem::path& shard, const ManifestTensor&, const StoredTensor&);
  Array array_of(std::string_view tensor) const;

  std::vector<SafeTensors> shards_;
  TensorMap tensors_;  // spans into the shards, as those of fragments
  std::map<std::string, std::vector<StoredFragment>, std::less<>> fragments_;
};

constexpr u64 default_shard_bytes = u64(1) << 30;
// A new directory that appears whole or not at all; one of that name is replaced in one step.
void write_checkpoint(const std::filesystem::path& path, const Snapshot&, u64 shard_bytes = default_shard_bytes);

// The same by several processes: one has this, all write shards into its directory, one publishes it when they have.
class UnfinishedCheckpoint {
 public:
  explicit UnfinishedCheckpoint(const std::filesystem::path& path) : unfinished_(path) {}
  const std::filesystem::path& directory() const { return unfinished_.directory(); }
  // `about`: what belongs to it beside its tensors. An Error when a tensor is not there in whole.
  void publish(const Snapshot& about, std::vector<ManifestFile> shards);

 private:
  AtomicDirectory unfinished_;
};
// The snapshot's tensors as <stem>-00001.safetensors and so on.
std::vector<ManifestFile> write_shards(const std::filesystem::path& directory, const Snapshot&,
                                       std::string_view stem = "shard", u64 shard_bytes = default_shard_bytes);

// In a directory of checkpoints, step-<number> each.
std::string checkpoint_name(i64 step);                                                      // "step-00000100"
std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& directory);  // newest first
void prune_checkpoints(const std::filesystem::path& directory, int keep, i64 newest);       // see keep in RUN.toml
// When one cannot be written because the disk is full: removes what was left half written, else the oldest of `keep` or
// more, never the newest that is whole. Whether anything was removed.
bool make_room(const std::filesystem::path& directory, int keep);
bool is_checkpoint(const std::filesystem::path& directory);  // has a manifest

struct Newest {
  std::optional<Checkpoint> checkpoint;  // the newest that is whole
  std::vector<std::string> damaged;      // what is wrong with those after it
};
Newest newest_checkpoint(const std::filesystem::path& directory);

}  // namespace stretto

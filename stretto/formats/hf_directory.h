// The weights of a Hugging Face directory: one model.safetensors, or shards with an index.
//
//   HfWeights weights("gpt2/model");
//   std::vector<float> w = values<float>(weights.at("wte.weight"));
//   write_hf_weights("export", tensors, 5'000'000'000);
#pragma once
#include <filesystem>
#include <string_view>
#include <vector>

#include "stretto/formats/safetensors.h"

namespace stretto {

class HfWeights {
 public:
  explicit HfWeights(const std::filesystem::path& directory);  // Error names a missing shard or tensor
  const TensorMap& tensors() const { return tensors_; }
  const StoredTensor* find(std::string_view name) const;
  const StoredTensor& at(std::string_view name) const;
  const std::filesystem::path& directory() const { return directory_; }

 private:
  std::filesystem::path directory_;
  std::vector<SafeTensors> shards_;
  TensorMap tensors_;  // spans into the shards
};

// Refuses a place where no directory can be made: before hours of training, not after.
void check_hf_target(const std::filesystem::path& directory);

// Whole tensors are put into shards of at most `shard_bytes` (a larger tensor has one to itself), in the order given.
// The index is written last: without it a reader refuses the directory instead of seeing half of it. Weights of an
// earlier export with another number of shards are removed.
void write_hf_weights(const std::filesystem::path& directory, const std::vector<NamedTensor>& tensors,
                      u64 shard_bytes = 5'000'000'000);

}  // namespace stretto

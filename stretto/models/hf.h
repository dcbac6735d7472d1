// Models as Hugging Face directories: config.json and safetensors under their names and in their layout.
//
//   HfModel loaded = load_hf("gpt2");                         // config and weights in our logical shapes
//   save_hf("export", loaded.config, loaded.weights, {.stored = FileType::BF16});
//
// Read: gpt2, llama, mistral, mixtral, qwen2, qwen3 and the types of hf_types.cpp, with the keys of transformers 4.x
// and 5.x. A key that would change the mathematics and is not known here is refused by name. `as`: what the type of
// config.json counts as, for models that are one of these under another name; "": what it says.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "stretto/base/array.h"
#include "stretto/formats/fields.h"
#include "stretto/formats/stored_tensor.h"
#include "stretto/models/family.h"

namespace stretto {

struct HfConfig {
  ModelConfig config;               // complete and valid
  FileType stored = FileType::F32;  // what the weights are kept in
};
HfConfig parse_hf_config(const Field& json, std::string_view as = {});
// config.json, or the directory that holds one
HfConfig read_hf_config(const std::filesystem::path& file, std::string_view as = {});
std::vector<std::string> hf_type_names();
// Keys of both 4.x and 5.x. A config that no supported model type expresses is refused.
Field hf_config(const ModelConfig&, FileType stored);

// One tensor of a file, in our shape; the spec's stored_shape() must be the tensor's.
Array from_stored(const ParamSpec&, const StoredTensor&, DType dtype);
// One parameter, from as many tensors as it has on disk.
Array from_files(const ParamSpec&, const std::function<const StoredTensor&(const ParamSpec&)>& read, DType dtype);

// The other way: bytes of a plain spec's tensor, of an f32 or f64 array.
std::vector<std::byte> to_stored(const ParamSpec&, const Array&, FileType);

using Weights = std::map<std::string, Array, std::less<>>;  // by parameter name, logical values
struct HfModel {
  ModelConfig config;
  FileType stored = FileType::F32;
  Weights weights;
};
// Missing, surplus and misshapen tensors are all named in one Error. `dtype`: f32 or f64, what to convert to.
HfModel load_hf(const std::filesystem::path& directory, DType dtype = f32, std::string_view as = {});
// The same refusals, without reading values.
void check_hf(const std::filesystem::path& directory, std::string_view as = {});
// Which tokens begin and end a text: a number or a list, as config.json has it.
struct HfEnds {
  Field begin = {}, end = {};
};
struct SaveOptions {
  FileType stored = FileType::F32;
  u64 shard_bytes = 5'000'000'000;
  HfEnds ends = {};
};
void save_hf(const std::filesystem::path& directory, const ModelConfig&, const Weights&, const SaveOptions& = {});

}  // namespace stretto

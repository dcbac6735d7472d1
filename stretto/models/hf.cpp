#include "stretto/models/hf.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "stretto/formats/atomic_file.h"
#include "stretto/formats/hf_directory.h"
#include "stretto/models/head.h"
#include "stretto/models/inner/hf_closest.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

// to[c][r] = from[r][c], in blocks that stay in the cache.
template <class T>
void transpose(std::span<const T> from, i64 rows, i64 columns, std::span<T> to) {
  constexpr i64 block_side = 32;
  for (i64 r0 = 0; r0 < rows; r0 += block_side)
    for (i64 c0 = 0; c0 < columns; c0 += block_side)
      for (i64 r = r0; r < std::min(rows, r0 + block_side); ++r)
        for (i64 c = c0; c < std::min(columns, c0 + block_side); ++c) to[c * rows + r] = from[r * columns + c];
}

std::string shape_text(const std::vector<i64>& shape) {
  std::string s = "[";
  for (i64 n : shape) s += fmt::format("{}{}", s.size() > 1 ? ", " : "", n);
  return s + "]";
}

template <class T>
Array read_param(const ParamSpec& spec, const StoredTensor& tensor) {
  std::vector<T> v = values<T>(tensor, spec.stored);
  if (!spec.plain()) {
    std::vector<T> own;
    for (i64 place : spec.stored_places()) own.push_back(v[place]);
    v = std::move(own);
  } else if (spec.transposed) {
    std::vector<T> turned(v.size());
    transpose<T>(v, tensor.shape[0], tensor.shape[1], turned);
    v = std::move(turned);
  }
  return Array::of<T>(v, spec.sizes);
}

template <class T>
std::vector<T> stored_values(const ParamSpec& spec, const Array& array) {
  const std::span<const T> v = array.as<T>();
  if (!spec.transposed) return {v.begin(), v.end()};
  const std::vector<i64> shape = spec.stored_shape();
  std::vector<T> turned(v.size());
  transpose<T>(v, shape[1], shape[0], turned);
  return turned;
}

// The tensor of that name, of all parameters that lie in it.
template <class T>
std::vector<T> joined_values(const std::string& name, const std::vector<ParamSpec>& params, const Weights& weights) {
  std::vector<T> all;
  for (const ParamSpec& p : params) {
    if (p.stored != name) continue;
    const std::vector<i64> shape = p.stored_shape();
    all.resize(std::accumulate(shape.begin(), shape.end(), std::size_t(1), std::multiplies<>()));
    const std::span<const T> own = weights.find(p.name)->second.as<T>();
    for (std::size_t i = 0; i64 place : p.stored_places()) all[place] = own[i++];
  }
  return all;
}

// Masks and tables that older versions kept beside the weights.
bool is_buffer(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") || name.ends_with(".rotary_emb.inv_freq");
}

// Layers after the last one of config.json predict further tokens (MTP).
bool is_further_layer(std::string_view name, const ModelConfig& c) {
  for (const std::string_view prefix : {"layers.", "model.layers."}) {
    if (!name.starts_with(prefix)) continue;
    const char *const number = name.data() + prefix.size(), *const last = name.data() + name.size();
    i64 layer = 0;
    const auto [end, error] = std::from_chars(number, last, layer);
    return error == std::errc() && end != last && *end == '.' && layer >= c.layers;
  }
  return false;
}

void refuse_further_layers(const HfWeights& files, const ModelConfig& c, std::vector<Fault>& faults) {
  i64 tensors = 0;
  for (const auto& [name, tensor] : files.tensors()) tensors += is_further_layer(name, c);
  if (tensors > 0)
    faults.push_back({files.directory().string(),
                      fmt::format("{} tensors belong to layers from {} on, and config.json has {}: layers that predict "
                                  "further tokens (MTP, num_nextn_predict_layers) are not supported",
                                  tensors, c.layers, c.layers),
                      "remove them from the files: the model without them is the same"});
}

const Family& family_on_disk(const ModelConfig& c) {
  const Family& f = family_named(c.family);
  if (f.stored_prefix.empty()) throw Error("hugging face", "there is no model type for family '{}'", c.family);
  return f;
}

// A tied head may be stored all the same, but then it must be the embedding.
void check_tied_head(const HfWeights& files, std::string_view embedding, std::vector<Fault>& faults) {
  const StoredTensor* head = files.find("lm_head.weight");
  const StoredTensor* table = files.find(embedding);
  if (!head || !table) return;
  if (head->shape != table->shape || values<double>(*head) != values<double>(*table))
    faults.push_back(
        {files.directory().string(),
         fmt::format("tensor 'lm_head.weight' differs from '{}', but config.json says that they are tied", embedding),
         "set tie_word_embeddings to false in config.json"});
}

// One entry per tensor on disk.
std::vector<ParamSpec> stored_params(const std::vector<ParamSpec>& params) {
  std::vector<ParamSpec> all;
  for (const ParamSpec& p : params) {
    if (p.parts == 0) all.push_back(p);
    for (i64 i = 0; i < p.parts; ++i) all.push_back(p.part(i));
  }
  return all;
}

template <class T>
Array cut_out(const Array& whole, const ParamSpec& part, i64 i) {
  return Array::of<T>(whole.as<T>().subspan(i * part.elements(), part.elements()), part.sizes);
}

Array part_of(const Array& whole, const ParamSpec& part, i64 i) {
  if (whole.sizes == part.sizes) return whole;
  return whole.dtype == f64 ? cut_out<double>(whole, part, i) : cut_out<float>(whole, part, i);
}

template <class T>
Array joined_parts(const ParamSpec& spec, const std::function<const StoredTensor&(const ParamSpec&)>& read) {
  std::vector<T> all;
  for (i64 i = 0; i < spec.parts; ++i) {
    const ParamSpec one = spec.part(i);
    const Array a = read_param<T>(one, read(one));
    all.insert(all.end(), a.as<T>().begin(), a.as<T>().end());
  }
  return Array::of<T>(all, spec.sizes);
}

}  // namespace

Array from_files(const ParamSpec& spec, const std::function<const StoredTensor&(const ParamSpec&)>& read, DType dtype) {
  if (spec.parts == 0) return from_stored(spec, read(spec), dtype);
  return dtype == f64 ? joined_parts<double>(spec, read) : joined_parts<float>(spec, read);
}

std::vector<std::byte> to_stored(const ParamSpec& spec, const Array& array, FileType type) {
  STRETTO_ASSERT(spec.plain(), "a part of a larger tensor");
  return array.dtype == f64 ? bytes_of<double>(stored_values<double>(spec, array), type, spec.stored)
                            : bytes_of<float>(stored_values<float>(spec, array), type, spec.stored);
}

Array from_stored(const ParamSpec& spec, const StoredTensor& tensor, DType dtype) {
  STRETTO_ASSERT(tensor.shape == spec.stored_shape(), "a tensor of another shape");
  return dtype == f64 ? read_param<double>(spec, tensor) : read_param<float>(spec, tensor);
}

namespace {

// Names in the files, which may lack the prefix that most of them have.
class NamesOnDisk {
 public:
  NamesOnDisk(const HfWeights& files, const ModelConfig& c)
      : prefix_(family_on_disk(c).stored_prefix),
        prefixed_(std::ranges::any_of(files.tensors(), [&](const auto& t) { return t.first.starts_with(prefix_); })) {}
  std::string operator()(const ParamSpec& p) const {
    const bool cut = !prefixed_ && p.stored.starts_with(prefix_);
    return cut ? p.stored.substr(prefix_.size()) : p.stored;
  }

 private:
  std::string_view prefix_;
  bool prefixed_;
};

}  // namespace

std::vector<Fault> tensor_faults(const HfWeights& files, const ModelConfig& c) {
  const NamesOnDisk on_disk(files, c);
  const std::vector<ParamSpec> params = family_on_disk(c).params(c);
  std::vector<Fault> faults;
  const auto wrong = [&](std::string what) { faults.push_back({files.directory().string(), std::move(what), ""}); };
  std::set<std::string, std::less<>> known;
  for (const ParamSpec& p : stored_params(params)) {
    const std::string name = on_disk(p), need = shape_text(p.stored_shape());
    known.insert(name);
    const StoredTensor* tensor = files.find(name);
    if (!tensor)
      wrong(fmt::format("tensor '{}' {} is missing", name, need));
    else if (tensor->shape != p.stored_shape())
      wrong(fmt::format("tensor '{}' is {} but config.json asks for {}", name, tensor->str(), need));
    else if (!is_float(tensor->type))
      wrong(fmt::format("tensor '{}' is {}, which is no floating-point type", name, tensor->str()));
  }
  if (*c.tied) known.insert("lm_head.weight");
  refuse_further_layers(files, c, faults);
  for (const auto& [name, tensor] : files.tensors())
    if (!known.contains(name) && !is_buffer(name) && !is_further_layer(name, c))
      wrong(fmt::format("tensor '{}' {} is no part of this model", name, tensor.str()));
  return faults;
}

namespace {

// Everything is looked at; values are read only when a dtype is asked for.
HfModel opened(const fs::path& directory, std::optional<DType> dtype, std::string_view as) {
  const HfWeights files(directory);
  const HfConfig head = read_hf_config(directory, as);
  const NamesOnDisk on_disk(files, head.config);
  const std::vector<ParamSpec> params = family_on_disk(head.config).params(head.config);
  std::vector<Fault> faults = tensor_faults(files, head.config);
  if (*head.config.tied) check_tied_head(files, on_disk(params[0]), faults);
  refuse(std::move(faults));
  HfModel m{head.config, head.stored, {}};
  if (!dtype) return m;
  for (const ParamSpec& p : params) {
    const auto read = [&](const ParamSpec& one) -> const StoredTensor& { return files.at(on_disk(one)); };
    m.weights.emplace(p.name, from_files(p, read, *dtype));
  }
  return m;
}

}  // namespace

HfModel load_hf(const fs::path& directory, DType dtype, std::string_view as) {
  if (dtype != f32 && dtype != f64)
    throw Error("hugging face", "weights cannot be read as {}", name_of(dtype)).hint("use f32 or f64");
  return opened(directory, dtype, as);
}

void check_hf(const fs::path& directory, std::string_view as) { opened(directory, {}, as); }

void save_hf(const fs::path& directory, const ModelConfig& config, const Weights& weights, const SaveOptions& o) {
  ModelConfig c = checked(config);
  if (c.head_parts > 1) {  // files have the head in one
    Weights whole = head_parts_joined(c, weights);
    c.head_parts = 1;
    return save_hf(directory, c, whole, o);
  }
  const FileType stored = o.stored;
  const Family& family = family_on_disk(c);
  Field json = hf_config(c, stored);
  json.set("bos_token_id", o.ends.begin);
  json.set("eos_token_id", o.ends.end);
  const std::vector<ParamSpec> params = family.params(c);
  std::vector<Fault> faults;
  const auto wrong = [&](std::string what) { faults.push_back({"hugging face", std::move(what), ""}); };
  std::set<std::string, std::less<>> known;
  for (const ParamSpec& p : params) {
    known.insert(p.name);
    const auto it = weights.find(p.name);
    if (it == weights.end())
      wrong(fmt::format("parameter '{}' {} is missing", p.name, shape_text(p.sizes)));
    else if (it->second.sizes != p.sizes || (it->second.dtype != f32 && it->second.dtype != f64))
      wrong(
          fmt::format("parameter '{}' is {} but must be f32 or f64 {}", p.name, it->second.str(), shape_text(p.sizes)));
  }
  for (const auto& [name, array] : weights)
    if (!known.contains(name)) wrong(fmt::format("parameter '{}' {} is no part of this model", name, array.str()));
  refuse(std::move(faults));

  std::vector<std::vector<std::byte>> bytes;
  std::vector<NamedTensor> tensors;
  const std::vector<ParamSpec> all = stored_params(params);
  bytes.reserve(all.size());
  std::map<std::string, i64> number;  // of a parameter's parts
  std::set<std::string> written;
  const auto add = [&]<class T>(const ParamSpec& p) {
    const Array& whole = weights.find(p.name)->second;
    const std::vector<T> v = p.plain() ? stored_values<T>(p, part_of(whole, p, number[p.name]++))
                                       : joined_values<T>(p.stored, params, weights);
    bytes.push_back(bytes_of<T>(v, stored, p.stored));
    tensors.push_back({p.stored, stored, p.stored_shape(), bytes.back()});
  };
  for (const ParamSpec& p : all) {
    if (!written.insert(p.stored).second) continue;
    weights.find(p.name)->second.dtype == f64 ? add.operator()<double>(p) : add.operator()<float>(p);
  }
  write_hf_weights(directory, tensors, o.shard_bytes);
  write_file(directory / "config.json", write_json(json, 2) + "\n");
}

}  // namespace stretto

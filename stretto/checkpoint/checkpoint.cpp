// Reading.
#include "stretto/checkpoint/checkpoint.h"

#include <algorithm>
#include <charconv>

#include "stretto/base/files.h"
#include "stretto/base/hash.h"
#include "stretto/base/text.h"
#include "stretto/formats/mapped_file.h"
#include "stretto/formats/utf8.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view parameter_prefix = "parameter/";

u64 hash_of_bytes(std::span<const std::byte> bytes) { return hash_bytes(bytes.data(), bytes.size()); }

void check_file(const fs::path& path, const ManifestFile& f, std::span<const std::byte> bytes,
                const TensorMap* tensors) {
  if (bytes.size() != f.bytes)
    throw Error(path.string(), "is {} bytes long and was {} when it was written", bytes.size(), f.bytes)
        .hint("{}", bytes.size() < f.bytes ? "the file is cut off" : "something is appended to the file");
  if (hash_of_bytes(bytes) == f.hash) return;
  if (tensors)
    for (const ManifestTensor& t : f.tensors)
      if (const auto it = tensors->find(t.name); it != tensors->end() && hash_of_bytes(it->second.bytes) != t.hash)
        throw Error(path.string(), "is not as it was written: tensor '{}' has changed", shown(t.name))
            .hint("the file is damaged");
  throw Error(path.string(), "is not as it was written: its hash has changed").hint("the file is damaged");
}

std::optional<i64> step_of(const fs::path& path) {
  const std::string name = path.filename().string();
  i64 step = 0;
  if (!name.starts_with("step-")) return std::nullopt;
  const auto [end, wrong] = std::from_chars(name.data() + 5, name.data() + name.size(), step);
  if (wrong != std::errc() || end != name.data() + name.size() || checkpoint_name(step) != name) return std::nullopt;
  return step;
}

}  // namespace

std::string parameter_tensor(std::string_view parameter) { return fmt::format("{}{}", parameter_prefix, parameter); }
std::string state_tensor(std::string_view state, std::string_view parameter) {
  return fmt::format("state/{}/{}", state, parameter);
}
std::string checkpoint_name(i64 step) { return fmt::format("step-{:08}", step); }
bool is_checkpoint(const fs::path& directory) {
  std::error_code ignored;
  return fs::exists(directory / manifest_name, ignored);
}

u64 Snapshot::bytes() const {
  u64 n = 0;
  for (const Tensor& t : tensors) n += t.value.bytes.size();
  return n;
}

Checkpoint::Checkpoint(const fs::path& directory) : path_(directory) {
  const fs::path file = directory / manifest_name;
  if (!is_folder(directory)) throw Error(directory.string(), "is not a directory");
  if (!is_there(file))
    throw Error(directory.string(), "has no {} and so is no whole checkpoint", manifest_name)
        .hint("it may have been interrupted while it was written or removed");
  manifest_ = parse_manifest(MappedFile(file).text(), file.string());
  if (const std::vector<std::string> faults = incomplete(manifest_); !faults.empty())
    throw Error(file.string(), "has no whole tensor {}", join(faults, "; "));
  for (const ManifestFile& f : manifest_.shards) {
    const fs::path shard = directory / f.name;
    if (!is_there(shard)) throw Error(shard.string(), "is missing, but the manifest names it");
    const MappedFile mapped(shard);
    std::optional<SafeTensors> tensors;
    try {
      tensors.emplace(shard);
    } catch (const Error&) {  // the size or the hash says it better, unless both are right
      check_file(shard, f, mapped.bytes(), nullptr);
      throw;
    }
    check_file(shard, f, mapped.bytes(), &tensors->tensors());
    for (const ManifestTensor& t : f.tensors) add(shard, t, tensors->at(t.name));
    shards_.push_back(std::move(*tensors));
  }
  for (const ManifestFile& f : manifest_.extras) {
    if (!is_there(directory / f.name))
      throw Error((directory / f.name).string(), "is missing, but the manifest names it");
    check_file(directory / f.name, f, MappedFile(directory / f.name).bytes(), nullptr);
  }
}

void Checkpoint::add(const fs::path& shard, const ManifestTensor& t, const StoredTensor& stored) {
  if (stored.type != FileType::F32 && stored.type != FileType::F64)
    throw Error(shard.string(), "tensor '{}' is {}", shown(t.name), stored.str()).hint("use F32 or F64");
  if (!t.fragment) {
    tensors_.emplace(t.name, stored);
    return;
  }
  const auto& [name, whole] = *tensors_.try_emplace(t.name, StoredTensor{stored.type, t.fragment->shape, {}}).first;
  if (stored.type != whole.type || stored.count() != t.fragment->count)
    throw Error(shard.string(), "tensor '{}' is {}, and should be {} elements of {}", shown(name), stored.str(),
                t.fragment->count, whole.str());
  fragments_[name].push_back({*t.fragment, stored.bytes});
}

Array Checkpoint::array_of(std::string_view tensor) const {
  const StoredTensor& t = tensor_at(tensors_, tensor, path_);
  Array a{t.type == FileType::F64 ? f64 : f32, t.shape, {t.bytes.begin(), t.bytes.end()}};
  const auto fragments = fragments_.find(tensor);
  if (fragments == fragments_.end()) return a;
  a.bytes.resize(a.elements() * size_of(t.type));
  for (const StoredFragment& p : fragments->second) put_fragment(p.fragment, size_of(t.type), p.bytes, a.bytes);
  return a;
}

std::vector<std::string> Checkpoint::parameters() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_)
    if (name.starts_with(parameter_prefix)) names.push_back(name.substr(parameter_prefix.size()));
  return names;
}

Array Checkpoint::parameter(std::string_view name) const { return array_of(parameter_tensor(name)); }

Array Checkpoint::state(std::string_view which, std::string_view parameter) const {
  return array_of(state_tensor(which, parameter));
}

std::vector<fs::path> checkpoints_in(const fs::path& directory) {
  std::vector<std::pair<i64, fs::path>> found;
  for (const fs::path& entry : entries_of(directory))
    if (const auto step = step_of(entry)) found.emplace_back(*step, entry);
  std::sort(found.rbegin(), found.rend());
  std::vector<fs::path> paths;
  for (auto& [step, path] : found) paths.push_back(std::move(path));
  return paths;
}

Newest newest_checkpoint(const fs::path& directory) {
  Newest n;
  for (const fs::path& path : checkpoints_in(directory)) {
    try {
      n.checkpoint.emplace(path);
      break;
    } catch (const Error& e) {
      if (e.kind() == Error::Kind::run) throw;  // it may be whole: there is no memory to read it, say
      n.damaged.push_back(e.what());
    }
  }
  return n;
}

}  // namespace stretto

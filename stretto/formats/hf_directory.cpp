#include "stretto/formats/hf_directory.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/formats/atomic_file.h"
#include "stretto/formats/fields.h"
#include "stretto/formats/utf8.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

constexpr const char* single_name = "model.safetensors";
constexpr const char* pickle_name = "pytorch_model.bin";  // runs a program when it is opened: not read
constexpr const char* index_name = "model.safetensors.index.json";

std::string shard_name(std::size_t i, std::size_t count) {
  return fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, count);
}

bool is_shard_name(std::string_view name) {
  const auto digits = [&](std::size_t at) {
    return std::all_of(name.begin() + std::ptrdiff_t(at), name.begin() + std::ptrdiff_t(at) + 5,
                       [](char c) { return c >= '0' && c <= '9'; });
  };
  return name.size() == 32 && name.starts_with("model-") && digits(6) && name.substr(11, 4) == "-of-" && digits(15) &&
         name.ends_with(".safetensors");
}

}  // namespace

HfWeights::HfWeights(const fs::path& directory) : directory_(directory) {
  if (!is_folder(directory))
    throw Error(directory.string(), "is not a directory").hint("give one that holds {} and config.json", single_name);
  if (is_there(directory / single_name)) {
    shards_.emplace_back(directory / single_name);
    tensors_ = shards_.back().tensors();
    return;
  }
  const fs::path index_path = directory / index_name;
  if (!is_there(index_path))
    throw Error(directory.string(), "holds neither {} nor {}", single_name, index_name)
        .hint("{}",
              is_there(directory / pickle_name)
                  ? fmt::format("{} is not read: load the model in transformers and save_pretrained it", pickle_name)
                  : "are the weights still to be fetched?");
  const Field index = read_json_file(index_path);
  const Field* map = index.find("weight_map");
  if (!map || !map->table()) throw Error(index_path.string(), "has no table 'weight_map'");

  std::map<std::string, std::optional<std::size_t>> opened;  // file -> index in shards_; none: it is missing
  std::vector<Fault> faults;
  for (const auto& [name, file] : *map->table()) {
    const auto* text = std::get_if<std::string>(&file.value);
    // A name with a directory in it could lead anywhere on the machine.
    if (!text || text->empty() || text->find('/') != std::string::npos || *text == "." || *text == "..")
      throw Error(file.source.str(), "'{}' is said to be in {}, which is no file name", shown(name), file.str());
    const auto [found, is_new] = opened.try_emplace(*text, shards_.size());
    if (is_new) {
      if (!is_there(directory / *text)) {
        faults.push_back(
            {(directory / *text).string(), "is missing, but the index names it", "was the directory copied whole?"});
        found->second = {};
      } else {
        shards_.emplace_back(directory / *text);
      }
    }
    if (!found->second) continue;
    const StoredTensor* tensor = shards_[*found->second].find(name);
    if (!tensor)
      faults.push_back(
          {(directory / *text).string(), fmt::format("has no tensor '{}', but the index says so", shown(name)), ""});
    else
      tensors_.emplace(name, *tensor);
  }
  refuse(std::move(faults));
}

const StoredTensor* HfWeights::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

const StoredTensor& HfWeights::at(std::string_view name) const { return tensor_at(tensors_, name, directory_); }

void check_hf_target(const fs::path& directory) {
  std::error_code wrong;
  fs::path there = fs::absolute(directory, wrong);
  while (!there.empty() && there != there.root_path() && !fs::exists(there, wrong)) there = there.parent_path();
  if (!fs::is_directory(there, wrong))
    throw Error("export", "'{}' cannot be made: '{}' is no directory", directory.string(), there.string())
        .hint("choose another place");
  if (access(there.c_str(), W_OK) != 0)
    throw Error("export", "'{}' cannot be made: '{}' cannot be written to: {}", directory.string(), there.string(),
                std::generic_category().message(errno))
        .hint("choose another place");
}

void write_hf_weights(const fs::path& directory, const std::vector<NamedTensor>& tensors, u64 shard_bytes) {
  try {
    make_folders(directory);
  } catch (Error& e) {
    throw std::move(e).as(Error::Kind::run);
  }
  std::vector<std::vector<NamedTensor>> shards(1);
  u64 filled = 0, total = 0;
  for (const NamedTensor& t : tensors) {
    if (!shards.back().empty() && filled + t.bytes.size() > shard_bytes) shards.emplace_back(), filled = 0;
    shards.back().push_back(t);
    filled += t.bytes.size();
    total += t.bytes.size();
  }
  const Metadata metadata{{"format", "pt"}};
  std::vector<std::string> written;
  Field::Table map;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string name = shards.size() == 1 ? single_name : shard_name(i, shards.size());
    write_safetensors(directory / name, shards[i], metadata);
    written.push_back(name);
    for (const NamedTensor& t : shards[i]) map.push_back({t.name, Field(name)});
  }
  if (shards.size() > 1) {
    std::sort(map.begin(), map.end(), [](const Member& a, const Member& b) { return a.key < b.key; });
    Field index;
    index.set("metadata.total_size", Field(i64(total)));
    index.set("weight_map", Field(std::move(map)));
    write_file(directory / index_name, write_json(index, 2) + "\n");
    written.emplace_back(index_name);
  }
  for (const fs::path& entry : entries_of(directory)) {
    const std::string name = entry.filename().string();
    if ((name == single_name || name == index_name || is_shard_name(name)) &&
        std::find(written.begin(), written.end(), name) == written.end())
      remove_tree(entry);
  }
}

}  // namespace stretto

// Safetensors files, memory-mapped. Everything the header claims is checked before anything is read through it.
//
//   SafeTensors file("model.safetensors");
//   std::vector<float> w = values<float>(file.at("wte.weight"));
//   write_safetensors("copy.safetensors", {{"wte.weight", FileType::F32, {256, 64}, std::as_bytes(std::span(w))}});
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/formats/stored_tensor.h"

namespace stretto {

using TensorMap = std::map<std::string, StoredTensor, std::less<>>;
using Metadata = std::map<std::string, std::string, std::less<>>;

struct SafeTensorsHeader {
  TensorMap tensors;  // spans into the bytes that were parsed
  Metadata metadata;
};
// `file` is for messages. Throws Error for whatever is not a whole, valid file.
SafeTensorsHeader parse_safetensors(std::span<const std::byte> bytes, std::string_view file);

class SafeTensors {
 public:
  explicit SafeTensors(const std::filesystem::path& path);
  const TensorMap& tensors() const { return header_.tensors; }
  const Metadata& metadata() const { return header_.metadata; }
  const StoredTensor* find(std::string_view name) const;
  const StoredTensor& at(std::string_view name) const;  // Error names the file and the nearest name
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::shared_ptr<const class MappedFile> file_;  // shared: a copy of this sees the same bytes
  SafeTensorsHeader header_;
};

// The tensor of that name; Error names `where` and the nearest name there is.
const StoredTensor& tensor_at(const TensorMap& tensors, std::string_view name, const std::filesystem::path& where);

struct NamedTensor {
  std::string name;
  FileType type = FileType::F32;
  std::vector<i64> shape;
  std::span<const std::byte> bytes;
};
// The header with its length in front, and the tensors in the order in which their bytes follow it.
struct SafeTensorsPlan {
  std::string head;
  std::vector<std::size_t> order;
};
SafeTensorsPlan plan_safetensors(std::span<const NamedTensor> tensors, const Metadata& metadata);
// Atomic: afterwards the file is whole or as it was before.
void write_safetensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                       const Metadata& metadata = {});

}  // namespace stretto

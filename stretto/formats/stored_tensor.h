// A tensor as it lies in a file: element type, shape and bytes (row-major, little-endian, at any alignment), and the
// conversions between such bytes and numbers.
//
//   std::vector<float> w = values<float>(file.at("wte.weight"));
//   std::vector<std::byte> bytes = bytes_of<float>(w, FileType::BF16);
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/base/dtype.h"
#include "stretto/base/id.h"

namespace stretto {

enum class FileType : std::uint8_t { BOOL, U8, I8, I16, U16, F16, BF16, I32, U32, F32, F64, I64, U64 };
std::size_t size_of(FileType);
std::string_view name_of(FileType);                         // "F32"
std::optional<FileType> file_type_named(std::string_view);  // the inverse
FileType file_type_of(DType);                               // f32 -> F32
bool is_float(FileType);

struct StoredTensor {
  FileType type = FileType::F32;
  std::vector<i64> shape;
  std::span<const std::byte> bytes;  // belongs to the file (or buffer) it was found in
  i64 count() const { return i64(bytes.size() / size_of(type)); }
  std::string str() const;  // "F32 [256, 64]"
};

// Reads all elements as T: float, double or int32_t. Any type may be read as float or double (nearest value); only
// integers as int32_t, and one that does not fit is an Error. `name` is for messages.
template <class T>
void read_values(const StoredTensor& tensor, std::span<T> to, std::string_view name = "tensor");
template <class T>
std::vector<T> values(const StoredTensor& tensor, std::string_view name = "tensor") {
  std::vector<T> to(std::size_t(tensor.count()));
  read_values<T>(tensor, to, name);
  return to;
}

// Elements as bytes of `type`; the other direction of the above, with the same rules: floats never become integers, and
// an integer that does not fit is an Error.
template <class T>
void write_values(std::span<const T> from, FileType type, std::span<std::byte> to, std::string_view name = "tensor");
template <class T>
std::vector<std::byte> bytes_of(std::span<const T> from, FileType type, std::string_view name = "tensor") {
  std::vector<std::byte> to(from.size() * size_of(type));
  write_values<T>(from, type, to, name);
  return to;
}

}  // namespace stretto

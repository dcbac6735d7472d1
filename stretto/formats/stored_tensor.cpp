#include "stretto/formats/stored_tensor.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "stretto/base/error.h"
#include "stretto/base/half.h"
#include "stretto/base/text.h"
#include "stretto/formats/inner/visit_type.h"

namespace stretto {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian and read without swapping");

struct TypeRow {
  std::string_view name;
  std::uint8_t size;
};
constexpr std::array<TypeRow, 13> type_rows{{{"BOOL", 1},
                                             {"U8", 1},
                                             {"I8", 1},
                                             {"I16", 2},
                                             {"U16", 2},
                                             {"F16", 2},
                                             {"BF16", 2},
                                             {"I32", 4},
                                             {"U32", 4},
                                             {"F32", 4},
                                             {"F64", 8},
                                             {"I64", 8},
                                             {"U64", 8}}};

template <class S>
constexpr bool is_real = std::is_same_v<S, F16Bits> || std::is_same_v<S, BF16Bits> || std::is_floating_point_v<S>;

auto plain(F16Bits s) { return f32_of_f16(s.bits); }
auto plain(BF16Bits s) { return f32_of_bf16(s.bits); }
auto plain(BoolByte s) { return std::uint8_t(s.value != 0); }
template <class S>
requires std::is_arithmetic_v<S> S plain(S s) { return s; }

void check_count(std::size_t ours, std::size_t theirs, std::string_view name, FileType type) {
  if (ours != theirs) throw Error(name, "holds {} elements of {}, but {} are wanted", theirs, name_of(type), ours);
}

template <class Integer>
[[noreturn]] void does_not_fit(std::string_view name, std::size_t index, Integer value, std::string_view type) {
  throw Error(name, "element {} is {}, which does not fit {}", index, +value, type);
}

// What became infinite must have been it before.
template <class Real>
void check_infinite(std::string_view name, std::size_t index, Real value, std::string_view type) {
  if (std::isfinite(double(value)))
    throw Error(name, "element {} is {}, which does not fit {}", index, value, type)
        .hint("store it as {}", type == "F16" ? "BF16, F32 or F64" : type == "BF16" ? "F32 or F64" : "F64");
}

}  // namespace

std::size_t size_of(FileType t) { return type_rows[std::size_t(t)].size; }
std::string_view name_of(FileType t) { return type_rows[std::size_t(t)].name; }
bool is_float(FileType t) {
  return t == FileType::F16 || t == FileType::BF16 || t == FileType::F32 || t == FileType::F64;
}

std::optional<FileType> file_type_named(std::string_view name) {
  for (std::size_t i = 0; i < type_rows.size(); ++i)
    if (type_rows[i].name == name) return FileType(i);
  return std::nullopt;
}

FileType file_type_of(DType t) {
  switch (t) {
    case f32:
      return FileType::F32;
    case f64:
      return FileType::F64;
    case i32:
      return FileType::I32;
    case f16:
      return FileType::F16;
    case bf16:
      return FileType::BF16;
  }
  STRETTO_ASSERT(false, "a dtype without a file type");
}

std::string StoredTensor::str() const { return fmt::format("{} [{}]", name_of(type), fmt::join(shape, ", ")); }

template <class T>
void read_values(const StoredTensor& tensor, std::span<T> to, std::string_view name) {
  check_count(to.size(), std::size_t(tensor.count()), name, tensor.type);
  if (std::is_same_v<T, std::int32_t> && is_float(tensor.type))
    throw Error(name, "is {}, but integers are wanted", name_of(tensor.type));
  visit_type(tensor.type, [&]<class S>(S) {
    if constexpr (std::is_same_v<S, T>) {
      if (!to.empty()) std::memcpy(to.data(), tensor.bytes.data(), to.size_bytes());
    } else if constexpr (!(std::is_same_v<T, std::int32_t> && is_real<S>)) {
      const std::byte* from = tensor.bytes.data();
      for (std::size_t i = 0; i < to.size(); ++i, from += sizeof(S)) {
        S stored;
        std::memcpy(&stored, from, sizeof(S));
        const auto value = plain(stored);
        if constexpr (std::is_same_v<T, std::int32_t>)
          if (!std::in_range<std::int32_t>(value)) does_not_fit(name, i, value, "i32");
        to[i] = T(value);
      }
    }
  });
}

template <class T>
void write_values(std::span<const T> from, FileType type, std::span<std::byte> to, std::string_view name) {
  check_count(from.size(), to.size() / size_of(type), name, type);
  if (std::is_floating_point_v<T> && !is_float(type))
    throw Error(name, "has fractions and cannot be stored as {}", name_of(type));
  visit_type(type, [&]<class S>(S) {
    if constexpr (std::is_same_v<S, T>) {
      if (!from.empty()) std::memcpy(to.data(), from.data(), from.size_bytes());
    } else if constexpr (!(std::is_floating_point_v<T> && !is_real<S>)) {
      std::byte* at = to.data();
      for (std::size_t i = 0; i < from.size(); ++i, at += sizeof(S)) {
        S stored;
        if constexpr (std::is_same_v<S, F16Bits>) {
          stored.bits = f16_of(double(from[i]));
          if ((stored.bits & 0x7FFF) == 0x7C00) check_infinite(name, i, from[i], "F16");
        } else if constexpr (std::is_same_v<S, BF16Bits>) {
          if constexpr (std::is_same_v<T, float>)
            stored.bits = bf16_of(from[i]);
          else
            stored.bits = bf16_of(double(from[i]));
          if ((stored.bits & 0x7FFF) == 0x7F80) check_infinite(name, i, from[i], "BF16");
        } else if constexpr (std::is_same_v<S, BoolByte>) {
          if (from[i] != 0 && from[i] != 1) does_not_fit(name, i, from[i], name_of(type));
          stored.value = std::uint8_t(from[i]);
        } else {
          if constexpr (std::is_integral_v<S>)
            if (!std::in_range<S>(from[i])) does_not_fit(name, i, from[i], name_of(type));
          stored = S(from[i]);
          if constexpr (std::is_floating_point_v<S>)
            if (std::isinf(stored)) check_infinite(name, i, from[i], name_of(type));
        }
        std::memcpy(at, &stored, sizeof(S));
      }
    }
  });
}

template void read_values<float>(const StoredTensor&, std::span<float>, std::string_view);
template void read_values<double>(const StoredTensor&, std::span<double>, std::string_view);
template void read_values<std::int32_t>(const StoredTensor&, std::span<std::int32_t>, std::string_view);
template void write_values<float>(std::span<const float>, FileType, std::span<std::byte>, std::string_view);
template void write_values<double>(std::span<const double>, FileType, std::span<std::byte>, std::string_view);
template void write_values<std::int32_t>(std::span<const std::int32_t>, FileType, std::span<std::byte>,
                                         std::string_view);

}  // namespace stretto

// Element types. `size_of(f32) == 4`, `name_of(f32) == "f32"`, `dtype_named("f64")`.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace stretto {

// f16 and bf16 are storage types: files are read and written in them, kernels compute in f32 and f64.
enum class DType : std::uint8_t { f32, f64, i32, f16, bf16 };
using enum DType;

std::size_t size_of(DType);
std::string_view name_of(DType);
std::optional<DType> dtype_named(std::string_view);
inline bool is_float(DType t) { return t != i32; }

}  // namespace stretto

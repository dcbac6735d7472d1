// Element types. `size_of(f32) == 4`, `name_of(f32) == "f32"`, `dtype_named("f64")`.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace stretto {

// bf16 values are computed in f32 and rounded where they are stored (base/bf16.h); f16 exists in files only.
enum class DType : std::uint8_t { f32, f64, i32, f16, bf16 };
using enum DType;

std::size_t size_of(DType);
std::string_view name_of(DType);
std::optional<DType> dtype_named(std::string_view);
inline bool is_float(DType t) { return t != i32; }
inline DType wide(DType t) { return t == bf16 ? f32 : t; }  // what it is computed in

}  // namespace stretto

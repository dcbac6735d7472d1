// Two-byte floats: `f32_of_f16(0x3C00) == 1`, `bf16_of(1.0f) == 0x3F80`. Rounding is to nearest, ties to even, in one
// step from either f32 or f64; NaNs stay NaNs (quiet), infinities and subnormals are exact.
#pragma once
#include <bit>
#include <cstdint>

namespace stretto {

inline float f32_of_bf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t(bits) << 16); }

inline float f32_of_f16(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t(bits & 0x8000) << 16, rest = bits & 0x7FFF;
  if (rest >= 0x7C00) return std::bit_cast<float>(sign | 0x7F800000 | (rest & 0x3FF) << 13);
  // Scaling by 2^112 moves the exponent's bias from 15 to 127, subnormals included, and is exact.
  const float magnitude = std::bit_cast<float>(rest << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

// A double's value rounded to a float with `mantissa` stored bits and exponent bias `bias`. A float goes through it
// exactly: float to double loses nothing.
template <int mantissa, int bias>
std::uint16_t two_bytes_of(double value) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value), magnitude = bits & ~(1ull << 63);
  const std::uint16_t sign = std::uint16_t(bits >> 48 & 0x8000), infinity = std::uint16_t((2 * bias + 1) << mantissa);
  if (magnitude > 0x7FFull << 52)  // NaN: keeps its upper payload bits
    return std::uint16_t(sign | infinity | 1 << (mantissa - 1) |
                         (magnitude >> (52 - mantissa) & ((1 << mantissa) - 1)));
  const int exponent = int(magnitude >> 52) - 1023 + bias;
  if (exponent > 2 * bias) return sign | infinity;
  // Below the normal range the implicit one becomes explicit and the shift grows; the carry of rounding runs into the
  // exponent field, which is the right result in both ranges and at the border to infinity.
  const int extra = exponent >= 1 ? 0 : 1 - exponent;
  if (extra > mantissa + 1) return sign;
  std::uint64_t significand = magnitude & ((1ull << 52) - 1);
  significand |= exponent >= 1 ? std::uint64_t(exponent) << 52 : 1ull << 52;
  const int shift = 52 - mantissa + extra;
  const std::uint64_t half = 1ull << (shift - 1), low = significand & (2 * half - 1);
  std::uint64_t result = significand >> shift;
  result += low > half || (low == half && (result & 1));
  return std::uint16_t(sign | result);
}

inline std::uint16_t f16_of(double value) { return two_bytes_of<10, 15>(value); }

inline std::uint16_t bf16_of(double value) { return two_bytes_of<7, 127>(value); }
inline std::uint16_t bf16_of(float value) {  // the same result, in a loop that vectorises
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
  return std::uint16_t((bits & 0x7FFFFFFF) > 0x7F800000 ? bits >> 16 | 0x40 : rounded);
}

}  // namespace stretto

// What PTX instructions compute from registers, by name: one table, filled type by type.
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <type_traits>

#include "support/cuda/ptx.h"

namespace stretto::test {
namespace {

using Table = std::map<std::string, PtxValue>;

template <class T>
using Unsigned = std::conditional_t<
    sizeof(T) == 8, std::uint64_t,
    std::conditional_t<sizeof(T) == 4, std::uint32_t, std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>>>;

template <class T>
T as(PtxBits v) {
  return std::bit_cast<T>(static_cast<Unsigned<T>>(v));
}
template <class T>
PtxBits bits(T v) {
  return std::bit_cast<Unsigned<T>>(v);
}
PtxBits bits(bool v) { return v ? 1 : 0; }

// The functions have no state: their type is all there is of them.
template <class To, class From = To, class F>
void unary(Table& t, const std::string& name, F) {
  t[name] = [](const PtxBits* x) -> PtxBits { return bits<To>(static_cast<To>(F{}(as<From>(x[0])))); };
}
template <class T, class F>
void binary(Table& t, const std::string& name, F) {
  t[name] = [](const PtxBits* x) -> PtxBits { return bits<T>(static_cast<T>(F{}(as<T>(x[0]), as<T>(x[1])))); };
}
template <class T, class F>
void ternary(Table& t, const std::string& name, F) {
  t[name] = [](const PtxBits* x) -> PtxBits {
    return bits<T>(static_cast<T>(F{}(as<T>(x[0]), as<T>(x[1]), as<T>(x[2]))));
  };
}
template <class T, class F>
void compare(Table& t, const std::string& name, F) {
  t[name] = [](const PtxBits* x) -> PtxBits { return bits(bool(F{}(as<T>(x[0]), as<T>(x[1])))); };
}

template <class T>
bool unordered(T a, T b) {
  return std::isnan(a) || std::isnan(b);
}

// p + c with what the sum loses: together they are exact.
struct ExactSum {
  ExactSum(double p, double c) : sum(p + c) {
    const double t = sum - p;
    lost = (p - (sum - t)) + (c - t);
  }
  bool below(float f) const { return sum < double(f) || (sum == double(f) && lost < 0); }
  bool above(float f) const { return sum > double(f) || (sum == double(f) && lost > 0); }
  double sum, lost;
};
float fma_down(float a, float b, float c) {
  const ExactSum exact{double(a) * double(b), double(c)};
  const auto f = float(exact.sum);
  if (f == 0 && exact.sum == 0 && exact.lost == 0)
    return a * b == 0 && !std::signbit(a * b) && !std::signbit(c) ? 0.f : -0.f;
  return exact.below(f) ? std::nextafterf(f, -std::numeric_limits<float>::infinity()) : f;
}
float add_to_zero(float a, float b) {
  const ExactSum exact{double(a), double(b)};
  const auto f = float(exact.sum);
  return f > 0 ? (exact.below(f) ? std::nextafterf(f, 0.f) : f) : (exact.above(f) ? std::nextafterf(f, 0.f) : f);
}

template <class T>
void add_comparisons(Table& t, const std::string& type) {
  const auto all = [&](const char* prefix) {
    compare<T>(t, prefix + (".eq" + type), std::equal_to<>{});
    compare<T>(t, prefix + (".lt" + type), std::less<>{});
    compare<T>(t, prefix + (".le" + type), std::less_equal<>{});
    compare<T>(t, prefix + (".gt" + type), std::greater<>{});
    compare<T>(t, prefix + (".ge" + type), std::greater_equal<>{});
  };
  all("setp");
  if constexpr (std::is_floating_point_v<T>) {
    compare<T>(t, "setp.ne" + type, [](T a, T b) { return !unordered(a, b) && a != b; });
    compare<T>(t, "setp.equ" + type, [](T a, T b) { return unordered(a, b) || a == b; });
    compare<T>(t, "setp.neu" + type, [](T a, T b) { return unordered(a, b) || a != b; });
    compare<T>(t, "setp.ltu" + type, [](T a, T b) { return unordered(a, b) || a < b; });
    compare<T>(t, "setp.leu" + type, [](T a, T b) { return unordered(a, b) || a <= b; });
    compare<T>(t, "setp.gtu" + type, [](T a, T b) { return unordered(a, b) || a > b; });
    compare<T>(t, "setp.geu" + type, [](T a, T b) { return unordered(a, b) || a >= b; });
    compare<T>(t, "setp.num" + type, [](T a, T b) { return !unordered(a, b); });
    compare<T>(t, "setp.nan" + type, [](T a, T b) { return unordered(a, b); });
  } else {
    compare<T>(t, "setp.ne" + type, std::not_equal_to<>{});
  }
}

template <class T>
void add_reals(Table& t, const std::string& type) {
  for (const std::string r : {"", ".rn"}) {
    binary<T>(t, "add" + r + type, std::plus<>{});
    binary<T>(t, "sub" + r + type, std::minus<>{});
    binary<T>(t, "mul" + r + type, std::multiplies<>{});
  }
  binary<T>(t, "div.rn" + type, std::divides<>{});
  ternary<T>(t, "fma.rn" + type, [](T a, T b, T c) { return std::fma(a, b, c); });
  binary<T>(t, "min" + type, [](T a, T b) { return std::fmin(a, b); });
  binary<T>(t, "max" + type, [](T a, T b) { return std::fmax(a, b); });
  binary<T>(t, "copysign" + type, [](T sign, T of) { return std::copysign(of, sign); });
  unary<T>(t, "neg" + type, std::negate<>{});
  unary<T>(t, "abs" + type, [](T a) { return std::fabs(a); });
  unary<T>(t, "sqrt.rn" + type, [](T a) { return std::sqrt(a); });
  unary<T>(t, "rcp.rn" + type, [](T a) { return T(1) / a; });
  for (const std::string r : {".approx", ".approx.ftz"}) {  // as exact as can be: a chip has a stated error more
    unary<T>(t, "ex2" + r + type, [](T a) { return std::exp2(a); });
    unary<T>(t, "lg2" + r + type, [](T a) { return std::log2(a); });
    unary<T>(t, "rcp" + r + type, [](T a) { return T(1) / a; });
    unary<T>(t, "rsqrt" + r + type, [](T a) { return T(1) / std::sqrt(a); });
    unary<T>(t, "tanh" + r + type, [](T a) { return std::tanh(a); });
  }
  unary<T>(t, "cvt.rni" + type + type, [](T a) { return std::nearbyint(a); });
  unary<T>(t, "cvt.rzi" + type + type, [](T a) { return std::trunc(a); });
  unary<T>(t, "cvt.rmi" + type + type, [](T a) { return std::floor(a); });
  unary<T>(t, "cvt.rpi" + type + type, [](T a) { return std::ceil(a); });
  unary<T>(t, "cvt.sat" + type + type, [](T a) { return a > 0 ? std::fmin(a, T(1)) : T(0); });
}

// Conversions to integers stop at the type's limits; of what is no number they make 0.
template <class To, class From>
To limited(From v) {
  if (std::isnan(v)) return 0;
  if (v <= From(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  if (v >= From(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
  return static_cast<To>(v);
}
template <class To, class From>
void add_to_integer(Table& t, const std::string& types) {
  unary<To, From>(t, "cvt.rzi" + types, [](From a) { return limited<To>(std::trunc(a)); });
  unary<To, From>(t, "cvt.rni" + types, [](From a) { return limited<To>(std::nearbyint(a)); });
  unary<To, From>(t, "cvt.rmi" + types, [](From a) { return limited<To>(std::floor(a)); });
  unary<To, From>(t, "cvt.rpi" + types, [](From a) { return limited<To>(std::ceil(a)); });
}

template <class T>
void add_integers(Table& t, const std::string& type) {
  using U = Unsigned<T>;
  using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
  binary<U>(t, "add" + type, std::plus<>{});
  binary<U>(t, "sub" + type, std::minus<>{});
  binary<U>(t, "mul.lo" + type, [](U a, U b) { return U(a * b); });
  binary<T>(t, "mul.hi" + type, [](T a, T b) { return T((Wide(a) * Wide(b)) >> (8 * sizeof(T))); });
  ternary<U>(t, "mad.lo" + type, [](U a, U b, U c) { return U(a * b + c); });
  binary<T>(t, "min" + type, [](T a, T b) { return a < b ? a : b; });
  binary<T>(t, "max" + type, [](T a, T b) { return a > b ? a : b; });
  binary<T>(t, "div" + type, [](T a, T b) { return b == 0 ? T(0) : T(a / b); });
  binary<T>(t, "rem" + type, [](T a, T b) { return b == 0 ? a : T(a % b); });
  unary<U>(t, "neg" + type, [](U a) { return U(0) - a; });
  unary<T>(t, "abs" + type, [](T a) { return a < 0 ? T(U(0) - U(a)) : a; });
  const auto shifted = [](const PtxBits* x) -> PtxBits {
    const auto by = std::uint32_t(x[1]), most = std::uint32_t(8 * sizeof(T));
    if (by >= most) return std::is_signed_v<T> && as<T>(x[0]) < 0 ? bits<U>(U(-1)) : 0;
    return bits<T>(T(as<T>(x[0]) >> by));
  };
  t["shr" + type] = shifted;
  unary<float, T>(t, "cvt.rn.f32" + type, [](T a) { return static_cast<float>(a); });
  unary<double, T>(t, "cvt.rn.f64" + type, [](T a) { return static_cast<double>(a); });
  add_to_integer<T, float>(t, type + ".f32");
  add_to_integer<T, double>(t, type + ".f64");
  add_comparisons<T>(t, type);
}
template <class To, class From>
void add_resize(Table& t, const std::string& to, const std::string& from) {
  unary<To, From>(t, "cvt" + to + from, [](From a) { return static_cast<To>(a); });
}
template <class From>
void add_resizes(Table& t, const std::string& from) {
  add_resize<std::uint8_t, From>(t, ".u8", from), add_resize<std::int8_t, From>(t, ".s8", from);
  add_resize<std::uint16_t, From>(t, ".u16", from), add_resize<std::int16_t, From>(t, ".s16", from);
  add_resize<std::uint32_t, From>(t, ".u32", from), add_resize<std::int32_t, From>(t, ".s32", from);
  add_resize<std::uint64_t, From>(t, ".u64", from), add_resize<std::int64_t, From>(t, ".s64", from);
}
template <class From, class To>
void add_wide(Table& t, const std::string& type) {
  t["mul.wide" + type] = [](const PtxBits* x) { return bits<To>(To(as<From>(x[0])) * To(as<From>(x[1]))); };
  t["mad.wide" + type] = [](const PtxBits* x) {
    return bits<To>(To(Unsigned<To>(To(as<From>(x[0])) * To(as<From>(x[1]))) + Unsigned<To>(x[2])));
  };
}

template <class U>
void add_bits(Table& t, const std::string& type) {
  const std::string n = ".b" + type;
  binary<U>(t, "and" + n, std::bit_and<>{});
  binary<U>(t, "or" + n, std::bit_or<>{});
  binary<U>(t, "xor" + n, std::bit_xor<>{});
  unary<U>(t, "not" + n, [](U a) { return U(~a); });
  t["shl" + n] = [](const PtxBits* x) -> PtxBits {
    return std::uint32_t(x[1]) >= 8 * sizeof(U) ? 0 : bits<U>(U(as<U>(x[0]) << std::uint32_t(x[1])));
  };
  binary<U>(t, "setp.eq" + n, std::equal_to<>{});
  binary<U>(t, "setp.ne" + n, std::not_equal_to<>{});
  for (const char* kind : {".b", ".u", ".s", ".f"}) {
    t["selp" + (kind + type)] = [](const PtxBits* x) { return x[2] & 1 ? x[0] : x[1]; };
    t["mov" + (kind + type)] = [](const PtxBits* x) { return bits<U>(U(x[0])); };
  }
  if constexpr (sizeof(U) >= 4) {
    unary<std::uint32_t, U>(t, "popc" + n, [](U a) { return std::popcount(a); });
    unary<std::uint32_t, U>(t, "clz" + n, [](U a) { return std::countl_zero(a); });
    t["bfi" + n] = [](const PtxBits* x) {
      const unsigned at = x[2] & 255, length = x[3] & 255;
      const U low = length >= 8 * sizeof(U) ? U(-1) : U((U(1) << length) - 1);
      const U mask = at >= 8 * sizeof(U) ? U(0) : U(low << at);
      return bits<U>(U((as<U>(x[1]) & ~mask) | (at >= 8 * sizeof(U) ? U(0) : U(as<U>(x[0]) << at) & mask)));
    };
  }
}

std::uint32_t to_bf16(float v) {
  const auto u = std::bit_cast<std::uint32_t>(v);
  return std::isnan(v) ? 0x7fff : (u + 0x7fff + (u >> 16 & 1)) >> 16;
}

// The halves of a times two bytes of b, the lower ones or the upper, and c.
PtxBits halves_by_bytes(const PtxBits* x, unsigned first) {
  const auto a = std::uint32_t(x[0]), b = std::uint32_t(x[1]) >> first;
  return std::uint32_t((a & 0xffff) * (b & 0xff) + (a >> 16) * (b >> 8 & 0xff) + std::uint32_t(x[2]));
}

PtxBits bytes_by_bytes(const PtxBits* x) {
  std::uint32_t sum = std::uint32_t(x[2]);
  for (unsigned i = 0; i < 32; i += 8) sum += std::uint32_t((x[0] >> i & 0xff) * (x[1] >> i & 0xff));
  return sum;
}

void add_others(Table& t) {
  t["and.pred"] = [](const PtxBits* x) { return x[0] & x[1]; };
  t["or.pred"] = [](const PtxBits* x) { return x[0] | x[1]; };
  t["xor.pred"] = [](const PtxBits* x) { return x[0] ^ x[1]; };
  t["not.pred"] = [](const PtxBits* x) { return x[0] ^ 1; };
  t["mov.pred"] = [](const PtxBits* x) { return x[0]; };
  for (const char* name : {"cvta.to.global.u64", "cvta.global.u64", "cvta.to.shared.u64", "cvta.shared.u64"})
    t[name] = [](const PtxBits* x) { return x[0]; };
  ternary<float>(t, "fma.rm.f32", [](float a, float b, float c) { return fma_down(a, b, c); });
  binary<float>(t, "add.rz.f32", [](float a, float b) { return add_to_zero(a, b); });
  unary<float, double>(t, "cvt.rn.f32.f64", [](double a) { return float(a); });
  unary<double, float>(t, "cvt.f64.f32", [](float a) { return double(a); });
  t["cvt.rn.bf16.f32"] = [](const PtxBits* x) -> PtxBits { return to_bf16(as<float>(x[0])); };
  t["cvt.rn.bf16x2.f32"] = [](const PtxBits* x) -> PtxBits {
    return PtxBits(to_bf16(as<float>(x[0]))) << 16 | to_bf16(as<float>(x[1]));
  };
  t["shf.l.wrap.b32"] = [](const PtxBits* x) -> PtxBits {
    return std::uint32_t((x[1] << 32 | std::uint32_t(x[0])) << (x[2] & 31) >> 32);
  };
  t["shf.r.wrap.b32"] = [](const PtxBits* x) -> PtxBits {
    return std::uint32_t((x[1] << 32 | std::uint32_t(x[0])) >> (x[2] & 31));
  };
  t["prmt.b32"] = [](const PtxBits* x) -> PtxBits {
    const PtxBits both = x[1] << 32 | std::uint32_t(x[0]);
    PtxBits result = 0;
    for (unsigned i = 0; i < 4; ++i) {
      const auto pick = unsigned(x[2] >> (4 * i)) & 15;
      const PtxBits byte = both >> (8 * (pick & 7)) & 255;
      result |= (pick & 8 ? (byte & 128 ? 255 : 0) : byte) << (8 * i);
    }
    return result;
  };
  t["dp4a.u32.u32"] = &bytes_by_bytes;
  t["dp2a.lo.u32.u32"] = [](const PtxBits* x) { return halves_by_bytes(x, 0); };
  t["dp2a.hi.u32.u32"] = [](const PtxBits* x) { return halves_by_bytes(x, 16); };
  // Of atomics: the new value from the old one and the operands. None adds real numbers: such sums have no order.
  t["atom.cas.b32"] = [](const PtxBits* x) { return x[0] == x[1] ? x[2] : x[0]; };
  t["atom.exch.b32"] = [](const PtxBits* x) { return x[1]; };
  binary<std::uint32_t>(t, "atom.add.u32", std::plus<>{});
  binary<std::uint32_t>(t, "atom.max.u32", [](auto a, auto b) { return a > b ? a : b; });
  binary<std::uint32_t>(t, "atom.min.u32", [](auto a, auto b) { return a < b ? a : b; });
}

Table all_values() {
  Table t;
  add_reals<float>(t, ".f32"), add_reals<double>(t, ".f64");
  add_comparisons<float>(t, ".f32"), add_comparisons<double>(t, ".f64");
  add_bits<std::uint16_t>(t, "16"), add_bits<std::uint32_t>(t, "32"), add_bits<std::uint64_t>(t, "64");
  add_integers<std::uint16_t>(t, ".u16"), add_integers<std::int16_t>(t, ".s16");
  add_integers<std::uint32_t>(t, ".u32"), add_integers<std::int32_t>(t, ".s32");
  add_integers<std::uint64_t>(t, ".u64"), add_integers<std::int64_t>(t, ".s64");
  add_resizes<std::uint8_t>(t, ".u8"), add_resizes<std::int8_t>(t, ".s8");
  add_resizes<std::uint16_t>(t, ".u16"), add_resizes<std::int16_t>(t, ".s16");
  add_resizes<std::uint32_t>(t, ".u32"), add_resizes<std::int32_t>(t, ".s32");
  add_resizes<std::uint64_t>(t, ".u64"), add_resizes<std::int64_t>(t, ".s64");
  add_wide<std::uint16_t, std::uint32_t>(t, ".u16"), add_wide<std::int16_t, std::int32_t>(t, ".s16");
  add_wide<std::uint32_t, std::uint64_t>(t, ".u32"), add_wide<std::int32_t, std::int64_t>(t, ".s32");
  add_others(t);
  return t;
}

const Table& table() {
  static const Table all = all_values();
  return all;
}

}  // namespace

PtxValue ptx_value(const std::string& name) {
  const auto it = table().find(name);
  return it == table().end() ? nullptr : it->second;
}

std::vector<std::string> ptx_value_names() {
  std::vector<std::string> names;
  for (const auto& [name, value] : table()) names.push_back(name);
  return names;
}

}  // namespace stretto::test

// What the machine for PTX computes, instruction by instruction, against C++; none may be left out.
#include <gmock/gmock.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <set>

#include "support/cuda/ptx_machine.h"

namespace stretto::test {
namespace {

// The instruction in a kernel of its own, parsed and run.
class OneInstruction {
 public:
  explicit OneInstruction(const std::string& name, int inputs, bool atomic = false)
      : inputs_(inputs), module_(text(name, inputs, atomic)) {
    memory_.add(0x1000, sizeof result_, reinterpret_cast<std::byte*>(&result_));
  }
  PtxBits operator()(const std::vector<PtxBits>& in, PtxBits there = 0) {
    const std::uint64_t to = 0x1000;
    std::vector<const void*> parameters{&to};
    for (int i = 0; i < inputs_; ++i) parameters.push_back(&in[std::size_t(i)]);
    result_ = there;
    machine_.launch(module_.kernel("one"), {}, parameters.data());
    return result_;
  }

 private:
  static std::string text(const std::string& name, int inputs, bool atomic) {
    std::string head, loads, arguments;
    for (int i = 0; i < inputs; ++i) {
      const std::string n = std::to_string(i);
      head += ",\n\t.param .u64 x" + n;
      loads += "\tld.param.u64 %x" + n + ", [x" + n + "];\n";
      arguments += ", %x" + n;
    }
    const std::string body = atomic ? "\t" + name + " %r, [%to]" + arguments + ";\n"
                                    : "\t" + name + " %r" + arguments + ";\n\tst.global.u64 [%to], %r;\n";
    return ".visible .entry one(\n\t.param .u64 to" + head + "\n)\n{\n\tld.param.u64 %to, [to];\n" + loads + body +
           "\tret;\n}\n";
  }
  int inputs_;
  PtxModule module_;
  PtxBits result_ = 0;
  DeviceMemory memory_;
  PtxMachine machine_{memory_};
};

std::set<std::string> tested;

template <class T>
using Bits = std::conditional_t<
    sizeof(T) == 8, std::uint64_t,
    std::conditional_t<sizeof(T) == 4, std::uint32_t, std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>>>;
template <class T>
PtxBits raw(T v) {
  if constexpr (std::is_same_v<T, bool>)
    return v;
  else
    return std::bit_cast<Bits<T>>(v);
}

template <class T>
T some(std::mt19937_64& random) {
  if constexpr (std::is_floating_point_v<T>) {
    static const T odd[] = {T(0),
                            -T(0),
                            T(1),
                            T(-1.5),
                            T(0.5),
                            T(2.5),
                            T(1e10),
                            T(-3e18),
                            std::numeric_limits<T>::infinity(),
                            std::numeric_limits<T>::quiet_NaN()};
    if (random() % 4 == 0) return odd[random() % std::size(odd)];
    return std::uniform_real_distribution<T>(T(-9), T(9))(random);
  } else {
    const auto v = T(random() >> (random() % 8 == 0 ? 0 : 64 - 8 * sizeof(T) + random() % (8 * sizeof(T))));
    return random() % 3 == 0 && std::is_signed_v<T> ? T(0 - Bits<T>(v)) : v;
  }
}

template <class R>
bool same(PtxBits got, R expected) {
  if constexpr (std::is_floating_point_v<R>)
    if (std::isnan(expected)) return std::isnan(std::bit_cast<R>(Bits<R>(got)));
  return got == raw(expected);
}

template <class... In, class F>
void agrees(const std::string& name, F f) {
  ASSERT_TRUE(tested.insert(name).second) << name;
  OneInstruction run(name, sizeof...(In));
  std::mt19937_64 random(tested.size());
  for (int round = 0; round < 60; ++round) {
    const std::tuple<In...> in{some<In>(random)...};
    const auto expected = std::apply(f, in);
    const std::vector<PtxBits> bits = std::apply([](auto... x) { return std::vector<PtxBits>{raw(x)...}; }, in);
    ASSERT_TRUE(same(run(bits), expected)) << name << " of " << testing::PrintToString(in) << " is not " << expected;
  }
}

template <class T>
bool none(T a, T b) {
  return std::isnan(a) || std::isnan(b);
}

template <class T>
void ordered(const std::string& t) {
  agrees<T, T>("setp.eq" + t, [](T a, T b) { return a == b; });
  agrees<T, T>("setp.lt" + t, [](T a, T b) { return a < b; });
  agrees<T, T>("setp.le" + t, [](T a, T b) { return a <= b; });
  agrees<T, T>("setp.gt" + t, [](T a, T b) { return b < a; });
  agrees<T, T>("setp.ge" + t, [](T a, T b) { return b <= a; });
}

template <class T>
void reals(const std::string& t) {
  ordered<T>(t);
  agrees<T, T>("setp.ne" + t, [](T a, T b) { return a < b || b < a; });
  agrees<T, T>("setp.equ" + t, [](T a, T b) { return !(a < b || b < a); });
  agrees<T, T>("setp.neu" + t, [](T a, T b) { return !(a == b); });
  agrees<T, T>("setp.ltu" + t, [](T a, T b) { return !(a >= b); });
  agrees<T, T>("setp.leu" + t, [](T a, T b) { return !(a > b); });
  agrees<T, T>("setp.gtu" + t, [](T a, T b) { return !(a <= b); });
  agrees<T, T>("setp.geu" + t, [](T a, T b) { return !(a < b); });
  agrees<T, T>("setp.num" + t, [](T a, T b) { return !none(a, b); });
  agrees<T, T>("setp.nan" + t, [](T a, T b) { return none(a, b); });
  for (const std::string r : {"", ".rn"}) {
    agrees<T, T>("add" + r + t, [](T a, T b) { return a + b; });
    agrees<T, T>("sub" + r + t, [](T a, T b) { return a - b; });
    agrees<T, T>("mul" + r + t, [](T a, T b) { return a * b; });
  }
  agrees<T, T>("div.rn" + t, [](T a, T b) { return a / b; });
  agrees<T, T, T>("fma.rn" + t, [](T a, T b, T c) { return std::fma(a, b, c); });
  agrees<T, T>("min" + t, [](T a, T b) {
    return std::isnan(a) ? b : std::isnan(b) ? a : a < b || (a == b && std::signbit(a)) ? a : b;
  });
  agrees<T, T>("max" + t, [](T a, T b) {
    return std::isnan(a) ? b : std::isnan(b) ? a : a > b || (a == b && !std::signbit(a)) ? a : b;
  });
  agrees<T, T>("copysign" + t, [](T a, T b) { return std::signbit(a) ? -std::fabs(b) : std::fabs(b); });
  agrees<T>("neg" + t, [](T a) { return -a; });
  agrees<T>("abs" + t, [](T a) { return std::signbit(a) ? -a : a; });
  agrees<T>("sqrt.rn" + t, [](T a) { return std::sqrt(a); });
  agrees<T>("rcp.rn" + t, [](T a) { return 1 / a; });
  for (const std::string r : {".approx", ".approx.ftz"}) {
    agrees<T>("ex2" + r + t, [](T a) { return std::exp2(a); });
    agrees<T>("lg2" + r + t, [](T a) { return std::log2(a); });
    agrees<T>("rcp" + r + t, [](T a) { return 1 / a; });
    agrees<T>("rsqrt" + r + t, [](T a) { return 1 / std::sqrt(a); });
    agrees<T>("tanh" + r + t, [](T a) { return std::tanh(a); });
  }
  agrees<T>("cvt.rni" + t + t, [](T a) { return std::rint(a); });
  agrees<T>("cvt.rzi" + t + t, [](T a) { return a < 0 ? std::ceil(a) : std::floor(a); });
  agrees<T>("cvt.rmi" + t + t, [](T a) { return std::floor(a); });
  agrees<T>("cvt.rpi" + t + t, [](T a) { return std::ceil(a); });
  agrees<T>("cvt.sat" + t + t, [](T a) { return a >= 1 ? T(1) : a > 0 ? a : T(0); });
}

template <class T, class From>
T held(From v) {
  const long double x = v;
  if (std::isnan(v)) return 0;
  if (x <= static_cast<long double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (x >= static_cast<long double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return T(v);
}

template <class T>
void integers(const std::string& t) {
  using U = Bits<T>;
  static constexpr int width = 8 * sizeof(T);
  ordered<T>(t);
  agrees<T, T>("setp.ne" + t, [](T a, T b) { return a != b; });
  agrees<T, T>("add" + t, [](T a, T b) { return U(U(a) + U(b)); });
  agrees<T, T>("sub" + t, [](T a, T b) { return U(U(a) - U(b)); });
  agrees<T, T>("mul.lo" + t, [](T a, T b) { return U(__int128(a) * __int128(b)); });
  agrees<T, T>("mul.hi" + t, [](T a, T b) {
    if constexpr (std::is_signed_v<T>)
      return T(__int128(a) * b >> width);
    else
      return T(static_cast<unsigned __int128>(a) * b >> width);
  });
  agrees<T, T, T>("mad.lo" + t, [](T a, T b, T c) { return U(__int128(a) * __int128(b) + __int128(c)); });
  agrees<T, T>("min" + t, [](T a, T b) { return std::min(a, b); });
  agrees<T, T>("max" + t, [](T a, T b) { return std::max(a, b); });
  agrees<T, T>("div" + t, [](T a, T b) { return b == 0 ? T(0) : T(__int128(a) / b); });
  agrees<T, T>("rem" + t, [](T a, T b) { return b == 0 ? a : T(__int128(a) % b); });
  agrees<T>("neg" + t, [](T a) { return U(-__int128(a)); });
  agrees<T>("abs" + t, [](T a) { return U(a < 0 ? -__int128(a) : __int128(a)); });
  agrees<T, std::uint8_t>("shr" + t, [](T a, std::uint8_t n) { return T(__int128(a) >> std::min<int>(n, width)); });
  agrees<T>("cvt.rn.f32" + t, [](T a) { return float(a); });
  agrees<T>("cvt.rn.f64" + t, [](T a) { return double(a); });
  const auto from_real = [&]<class F>(const std::string& f, F) {
    agrees<F>("cvt.rzi" + t + f, [](F a) { return held<T>(std::trunc(a)); });
    agrees<F>("cvt.rni" + t + f, [](F a) { return held<T>(std::rint(a)); });
    agrees<F>("cvt.rmi" + t + f, [](F a) { return held<T>(std::floor(a)); });
    agrees<F>("cvt.rpi" + t + f, [](F a) { return held<T>(std::ceil(a)); });
  };
  from_real(".f32", 0.f), from_real(".f64", 0.);
}

template <class From>
void resizes(const std::string& from) {
  agrees<From>("cvt.u8" + from, [](From a) { return std::uint8_t(a); });
  agrees<From>("cvt.s8" + from, [](From a) { return std::int8_t(a); });
  agrees<From>("cvt.u16" + from, [](From a) { return std::uint16_t(a); });
  agrees<From>("cvt.s16" + from, [](From a) { return std::int16_t(a); });
  agrees<From>("cvt.u32" + from, [](From a) { return std::uint32_t(a); });
  agrees<From>("cvt.s32" + from, [](From a) { return std::int32_t(a); });
  agrees<From>("cvt.u64" + from, [](From a) { return std::uint64_t(a); });
  agrees<From>("cvt.s64" + from, [](From a) { return std::int64_t(a); });
}
template <class From, class To>
void wide(const std::string& t) {
  agrees<From, From>("mul.wide" + t, [](From a, From b) { return To(__int128(a) * b); });
  agrees<From, From, To>("mad.wide" + t, [](From a, From b, To c) { return Bits<To>(__int128(a) * b + c); });
}

template <class U>
void words(const std::string& width) {
  const std::string t = ".b" + width;
  agrees<U, U>("and" + t, [](U a, U b) { return U(a & b); });
  agrees<U, U>("or" + t, [](U a, U b) { return U(a | b); });
  agrees<U, U>("xor" + t, [](U a, U b) { return U(a ^ b); });
  agrees<U>("not" + t, [](U a) { return U(~a); });
  agrees<U, std::uint8_t>("shl" + t,
                          [](U a, std::uint8_t n) { return n >= 8 * sizeof(U) ? U(0) : U(a * (U(1) << n)); });
  agrees<U, U>("setp.eq" + t, [](U a, U b) { return (a ^ b) == 0; });
  agrees<U, U>("setp.ne" + t, [](U a, U b) { return (a ^ b) != 0; });
  for (const std::string kind : {".b", ".u", ".s", ".f"}) {
    agrees<U, U, std::uint8_t>("selp" + kind + width, [](U a, U b, std::uint8_t p) { return p % 2 ? a : b; });
    agrees<U>("mov" + kind + width, [](U a) { return a; });
  }
  if constexpr (sizeof(U) >= 4) {
    agrees<U>("popc" + t, [](U a) {
      std::uint32_t n = 0;
      for (; a; a &= a - 1) ++n;
      return n;
    });
    agrees<U>("clz" + t, [](U a) {
      std::uint32_t n = 0;
      for (U top = U(1) << (8 * sizeof(U) - 1); top && !(a & top); top >>= 1) ++n;
      return n;
    });
    agrees<U, U, std::uint8_t, std::uint8_t>("bfi" + t, [](U a, U b, std::uint8_t at, std::uint8_t n) {
      for (unsigned i = 0; i < n && at + i < 8 * sizeof(U); ++i)
        b = (b & ~(U(1) << (at + i))) | ((i < 8 * sizeof(U) ? a >> i & 1 : 0) << (at + i));
      return b;
    });
  }
}

template <class F>
float rounded(int mode, float x, F f) {
  std::fesetround(mode);
  const volatile float from = x, v = f(from);  // not computed before, not after
  std::fesetround(FE_TONEAREST);
  return v;
}
std::uint16_t nearest_bf16(float v) {
  if (std::isnan(v)) return 0x7fff;
  const auto down = std::uint16_t(raw(v) >> 16);
  const auto value = [](std::uint32_t h) { return double(std::bit_cast<float>(h << 16)); };
  const double below = std::fabs(double(v) - value(down)), above = std::fabs(value(down + 1u) - double(v));
  if (std::isinf(v) || below < above) return down;
  return above < below || down % 2 ? std::uint16_t(down + 1) : down;
}

void others() {
  using P = std::uint8_t;
  for (const auto& [name, f] : {std::pair{"and.pred", +[](int a, int b) { return a * b; }},
                                {"or.pred", +[](int a, int b) { return a + b > 0 ? 1 : 0; }},
                                {"xor.pred", +[](int a, int b) { return a != b ? 1 : 0; }}}) {
    ASSERT_TRUE(tested.insert(name).second);
    for (int a : {0, 1})
      for (int b : {0, 1}) EXPECT_EQ(OneInstruction(name, 2)({PtxBits(a), PtxBits(b)}), PtxBits(f(a, b))) << name;
  }
  agrees<P>("mov.pred", [](P a) { return a; });
  agrees<P>("not.pred", [](P a) { return P(a ^ 1); });
  for (const std::string name : {"cvta.to.global.u64", "cvta.global.u64", "cvta.to.shared.u64", "cvta.shared.u64"})
    agrees<std::uint64_t>(name, [](std::uint64_t a) { return a; });
  agrees<float, float, float>("fma.rm.f32", [](float a, float b, float c) {
    return rounded(FE_DOWNWARD, a, [&](float x) { return std::fma(x, b, c); });
  });
  agrees<float, float>("add.rz.f32",
                       [](float a, float b) { return rounded(FE_TOWARDZERO, a, [&](float x) { return x + b; }); });
  agrees<double>("cvt.rn.f32.f64", [](double a) { return float(a); });
  agrees<float>("cvt.f64.f32", [](float a) { return double(a); });
  agrees<float>("cvt.rn.bf16.f32", nearest_bf16);
  agrees<float, float>("cvt.rn.bf16x2.f32",
                       [](float a, float b) { return std::uint32_t(nearest_bf16(a) * 65536u + nearest_bf16(b)); });
  using W = std::uint32_t;
  agrees<W, W, P>("shf.l.wrap.b32", [](W lo, W hi, P n) { return n % 32 ? hi << n % 32 | lo >> (32 - n % 32) : hi; });
  agrees<W, W, P>("shf.r.wrap.b32", [](W lo, W hi, P n) { return n % 32 ? lo >> n % 32 | hi << (32 - n % 32) : lo; });
  using Bytes = std::array<std::uint8_t, 4>;
  const auto dot = [](W a, W b, W c, std::size_t first) {
    const auto bytes = std::bit_cast<Bytes>(b);
    return W(c + a % 65536 * bytes[first] + a / 65536 * bytes[first + 1]);
  };
  agrees<W, W, W>("dp2a.lo.u32.u32", [&](W a, W b, W c) { return dot(a, b, c, 0); });
  agrees<W, W, W>("dp2a.hi.u32.u32", [&](W a, W b, W c) { return dot(a, b, c, 2); });
  agrees<W, W, W>("dp4a.u32.u32", [](W a, W b, W c) {
    const auto left = std::bit_cast<Bytes>(a), right = std::bit_cast<Bytes>(b);
    return std::inner_product(left.begin(), left.end(), right.begin(), c);
  });
  agrees<W, W, W>("prmt.b32", [](W a, W b, W pick) {
    W r = 0;
    for (int i = 3; i >= 0; --i) {
      const W s = pick >> 4 * i & 15, byte = ((s & 4 ? b : a) >> 8 * (s & 3)) & 0xff;
      r = r << 8 | (s < 8 ? byte : byte > 127 ? 0xff : 0);
    }
    return r;
  });
}

void atomics() {
  const auto one = [](const char* type, const char* in_table, int inputs, std::vector<PtxBits> in, PtxBits there,
                      PtxBits expected) {
    tested.insert(in_table);
    EXPECT_EQ(OneInstruction(type, inputs, true)(in, there), expected) << type;
  };
  one("atom.global.cas.b32", "atom.cas.b32", 2, {5, 9}, 5, 9);
  one("atom.global.cas.b32", "atom.cas.b32", 2, {5, 9}, 6, 6);
  one("atom.global.exch.b32", "atom.exch.b32", 1, {5}, 6, 5);
  one("atom.global.add.u32", "atom.add.u32", 1, {5}, 0xfffffffe, 3);
  one("atom.global.max.u32", "atom.max.u32", 1, {5}, 6, 6);
  one("atom.global.min.u32", "atom.min.u32", 1, {5}, 6, 5);
}

TEST(PtxInstructions, ComputeWhatTheirNamesSay) {
  reals<float>(".f32"), reals<double>(".f64");
  words<std::uint16_t>("16"), words<std::uint32_t>("32"), words<std::uint64_t>("64");
  integers<std::uint16_t>(".u16"), integers<std::int16_t>(".s16"), integers<std::uint32_t>(".u32"),
      integers<std::int32_t>(".s32");
  integers<std::uint64_t>(".u64"), integers<std::int64_t>(".s64");
  resizes<std::uint8_t>(".u8"), resizes<std::int8_t>(".s8"), resizes<std::uint16_t>(".u16"),
      resizes<std::int16_t>(".s16");
  resizes<std::uint32_t>(".u32"), resizes<std::int32_t>(".s32"), resizes<std::uint64_t>(".u64"),
      resizes<std::int64_t>(".s64");
  wide<std::uint16_t, std::uint32_t>(".u16"), wide<std::int16_t, std::int32_t>(".s16");
  wide<std::uint32_t, std::uint64_t>(".u32"), wide<std::int32_t, std::int64_t>(".s32");
  others(), atomics();
  for (const std::string& name : ptx_value_names()) EXPECT_TRUE(tested.contains(name)) << "nothing tests " << name;
}

}  // namespace
}  // namespace stretto::test

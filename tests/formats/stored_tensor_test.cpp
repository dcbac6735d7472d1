#include "stretto/formats/stored_tensor.h"

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "stretto/base/half.h"
#include "support/message.h"

namespace stretto {
namespace {

using testing::HasSubstr;

constexpr double infinite = std::numeric_limits<double>::infinity();

// The two-byte value nearest to x by search over all 65536 of them; of two equally near the one with an even last bit.
struct Table {
  explicit Table(float (*decode)(std::uint16_t)) {
    for (unsigned bits = 0; bits < 0x8000; ++bits) {
      const float v = decode(std::uint16_t(bits));
      if (std::isfinite(v)) finite.push_back(v);  // ascending with bits
    }
  }
  std::uint16_t nearest(double x) const {
    const std::uint16_t sign = std::signbit(x) ? 0x8000 : 0;
    x = std::abs(x);
    const auto above = std::lower_bound(finite.begin(), finite.end(), x);
    const std::size_t high = std::size_t(above - finite.begin());
    if (high == finite.size()) {
      // Halfway to the value that would come next is already infinity (ties to even).
      const double last = finite.back(), step = last - finite[finite.size() - 2];
      return std::uint16_t(sign | (x - last >= step / 2 ? high : high - 1));
    }
    if (high == 0 || finite[high] == x) return std::uint16_t(sign | high);
    const double up = finite[high] - x, down = x - finite[high - 1];
    const std::size_t best = up < down ? high : down < up ? high - 1 : high % 2 == 0 ? high : high - 1;
    return std::uint16_t(sign | best);
  }
  std::vector<double> finite;
};

const Table& f16_table() {
  static const Table table(f32_of_f16);
  return table;
}
const Table& bf16_table() {
  static const Table table(f32_of_bf16);
  return table;
}

TEST(Half, KnownValues) {
  EXPECT_EQ(f32_of_f16(0x3C00), 1.0f);
  EXPECT_EQ(f32_of_f16(0xC000), -2.0f);
  EXPECT_EQ(f32_of_f16(0x7BFF), 65504.0f);
  EXPECT_EQ(f32_of_f16(0x0001), 0x1p-24f);
  EXPECT_EQ(f32_of_f16(0x03FF), 0x1p-14f - 0x1p-24f);
  EXPECT_EQ(f32_of_f16(0x7C00), infinite);
  EXPECT_EQ(f32_of_f16(0xFC00), -infinite);
  EXPECT_TRUE(std::isnan(f32_of_f16(0x7E01)));
  EXPECT_TRUE(std::signbit(f32_of_f16(0x8000)));
  EXPECT_EQ(f32_of_bf16(0x3F80), 1.0f);
  EXPECT_EQ(f32_of_bf16(0x0001), 0x1p-133f);
  EXPECT_EQ(f16_of(65519.99), 0x7BFF);
  EXPECT_EQ(f16_of(65520), 0x7C00);
  EXPECT_EQ(f16_of(0x1p-25), 0x0000);  // a tie goes to the even zero
  EXPECT_EQ(f16_of(0x1.0000001p-25), 0x0001);
  EXPECT_EQ(f16_of(std::numeric_limits<double>::denorm_min()), 0x0000);
  EXPECT_EQ(bf16_of(std::numeric_limits<double>::max()), 0x7F80);
  EXPECT_EQ(bf16_of(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(f16_of(-infinite), 0xFC00);
  // One rounding only: through f32 this would become a tie and end at 1.
  EXPECT_EQ(f16_of(1 + 0x1p-11 + 0x1p-40), 0x3C01);
  EXPECT_EQ(bf16_of(1 + 0x1p-8 + 0x1p-40), 0x3F81);
}

TEST(Half, EveryPatternSurvivesTheRoundTrip) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const float a = f32_of_f16(std::uint16_t(bits)), b = f32_of_bf16(std::uint16_t(bits));
    if (std::isnan(a)) {
      ASSERT_TRUE(std::isnan(f32_of_f16(f16_of(a))));
    } else {
      ASSERT_EQ(f16_of(a), bits);
    }
    if (std::isnan(b)) {
      ASSERT_TRUE(std::isnan(f32_of_bf16(bf16_of(b))) && std::isnan(f32_of_bf16(bf16_of(double(b)))));
    } else {
      ASSERT_EQ(bf16_of(b), bits);
      ASSERT_EQ(bf16_of(double(b)), bits);
    }
  }
}

TEST(Half, RoundsToTheNearestWithTiesToEven) {
  // Exact midpoints of all neighbours, and points a hair beside them.
  for (const auto& [table, encode] : {std::pair{&f16_table(), &f16_of},
                                      std::pair<const Table*, std::uint16_t (*)(double)>{&bf16_table(), &bf16_of}}) {
    const auto& v = table->finite;
    for (std::size_t i = 0; i + 1 < v.size(); ++i) {
      const double middle = v[i] + (v[i + 1] - v[i]) / 2;
      for (const double x : {middle, std::nextafter(middle, infinite), std::nextafter(middle, 0.0), -middle})
        ASSERT_EQ(encode(x), table->nearest(x)) << x;
    }
  }
}

TEST(Half, RandomDoublesAndFloatsRoundRight) {
  EXPECT_TRUE(rc::check([] {
    const auto bits = *rc::gen::arbitrary<std::uint64_t>();
    double x;
    std::memcpy(&x, &bits, 8);
    if (*rc::gen::inRange(0, 2))
      x = double(float(std::ldexp(*rc::gen::inRange(-1'000'000, 1'000'000) / 997.0, *rc::gen::inRange(-30, 16))));
    if (std::isnan(x)) return;
    RC_ASSERT(f16_of(x) == (std::isinf(x) ? (x < 0 ? 0xFC00 : 0x7C00) : f16_table().nearest(x)));
    if (!std::isinf(x)) RC_ASSERT(bf16_of(x) == bf16_table().nearest(x));
    const float y = float(x);
    RC_ASSERT(bf16_of(y) == bf16_of(double(y)));
  }));
}

template <class T>
StoredTensor stored(const std::vector<std::byte>& bytes, FileType type) {
  return {type, {i64(bytes.size() / size_of(type))}, bytes};
}

TEST(StoredTensor, EveryTypeReadsBackWhatWasWritten) {
  const std::vector<std::int32_t> small{0, 1, 1, 0, 1};
  for (int t = 0; t <= int(FileType::U64); ++t) {
    const FileType type{std::uint8_t(t)};
    EXPECT_EQ(file_type_named(name_of(type)), type);
    const auto bytes = bytes_of<std::int32_t>(small, type);
    EXPECT_EQ(bytes.size(), 5 * size_of(type));
    const StoredTensor tensor{type, {5}, bytes};
    EXPECT_EQ(values<float>(tensor), (std::vector<float>{0, 1, 1, 0, 1})) << name_of(type);
    EXPECT_EQ(values<double>(tensor), (std::vector<double>{0, 1, 1, 0, 1})) << name_of(type);
    if (is_float(type))
      EXPECT_THAT(refusal_of([&] { values<std::int32_t>(tensor, "x"); }), HasSubstr("but integers are wanted"));
    else
      EXPECT_EQ(values<std::int32_t>(tensor), small) << name_of(type);
  }
}

TEST(StoredTensor, ReadsAtAnyAlignment) {
  std::vector<std::byte> bytes(1 + 8 * 3);
  const double numbers[] = {1.5, -0.0, 1e300};
  std::memcpy(bytes.data() + 1, numbers, sizeof numbers);
  const StoredTensor tensor{FileType::F64, {3}, std::span(bytes).subspan(1)};
  EXPECT_EQ(values<double>(tensor), (std::vector<double>{1.5, -0.0, 1e300}));
  EXPECT_EQ(values<float>(tensor)[2], float(infinite));
}

TEST(StoredTensor, RefusesWhatDoesNotFit) {
  const std::int64_t wide[] = {-100, 1ll << 31};
  const StoredTensor tensor{FileType::I64, {2}, std::as_bytes(std::span(wide))};
  EXPECT_EQ(refusal_of([&] { values<std::int32_t>(tensor, "labels"); }),
            "[labels] element 1 is 2147483648, which does not fit i32");
  EXPECT_EQ(values<double>(tensor), (std::vector<double>{-100, 0x1p31}));
  const std::vector<std::int32_t> ids{3, 300};
  EXPECT_EQ(refusal_of([&] { bytes_of<std::int32_t>(ids, FileType::U8, "ids"); }),
            "[ids] element 1 is 300, which does not fit U8");
  EXPECT_EQ(refusal_of([&] { bytes_of<std::int32_t>(ids, FileType::BOOL, "ids"); }),
            "[ids] element 0 is 3, which does not fit BOOL");
  const std::vector<float> half{0.5f};
  EXPECT_EQ(refusal_of([&] { bytes_of<float>(half, FileType::I32, "w"); }),
            "[w] has fractions and cannot be stored as I32");
  const std::vector<double> large{1, -65520, 3.4e38, 1e39};  // rounded to infinity in F16, BF16, F32
  const auto stored = [&](FileType t) { return refusal_of([&] { bytes_of<double>(large, t, "w"); }); };
  EXPECT_EQ(stored(FileType::F16), "[w] element 1 is -65520, which does not fit F16; hint: store it as BF16, F32 or F64");
  EXPECT_EQ(stored(FileType::BF16), "[w] element 2 is 3.4e+38, which does not fit BF16; hint: store it as F32 or F64");
  EXPECT_EQ(stored(FileType::F32), "[w] element 3 is 1e+39, which does not fit F32; hint: store it as F64");
  EXPECT_EQ(stored(FileType::F64), "no error");
  std::vector<float> three(3);
  EXPECT_EQ(refusal_of([&] { read_values<float>(tensor, three, "labels"); }),
            "[labels] holds 2 elements of I64, but 3 are wanted");
}

TEST(StoredTensor, F64ReadAsF32RoundsOnce) {
  const double numbers[] = {1 + 0x1p-24 + 0x1p-40, std::numeric_limits<double>::quiet_NaN(), 0x1p-149};
  const StoredTensor tensor{FileType::F64, {3}, std::as_bytes(std::span(numbers))};
  const auto read = values<float>(tensor);
  EXPECT_EQ(read[0], 1 + 0x1p-23f);
  EXPECT_TRUE(std::isnan(read[1]));
  EXPECT_EQ(read[2], 0x1p-149f);
}

}  // namespace
}  // namespace stretto

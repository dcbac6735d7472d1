#include "stretto/view/inner/palette.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "stretto/view/escape.h"

namespace stretto {
namespace {

constexpr Phase all_phases[] = {Phase::F, Phase::B, Phase::I, Phase::W, Phase::R};

TEST(Palette, PhasesDifferInLightnessAlone) {
  for (const Phase a : all_phases)
    for (const Phase b : all_phases) {
      if (a >= b) continue;
      EXPECT_GE(std::abs(lightness(colour(a, 0, 1)) - lightness(colour(b, 0, 1))), 7) << letter(a) << letter(b);
    }
}

double linear(double c) { return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4); }

// What remains of a colour when one kind of cone is missing (matrices in linear RGB, full severity).
std::array<double, 3> seen(Rgb c, const std::array<double, 9>& m) {
  const double v[3] = {linear(c.r / 255.0), linear(c.g / 255.0), linear(c.b / 255.0)};
  std::array<double, 3> out{};
  for (int i = 0; i < 3; ++i)
    out[i] = std::sqrt(std::clamp(m[3 * i] * v[0] + m[3 * i + 1] * v[1] + m[3 * i + 2] * v[2], 0.0, 1.0));
  return out;
}

TEST(Palette, PhasesDifferForColourBlindReaders) {
  const std::array<double, 9> kinds[] = {
      {0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998},  // no red cones
      {0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.011820, 0.042940, 0.968881},   // no green
      {1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.303900}   // no blue
  };
  for (const auto& kind : kinds)
    for (const Phase a : all_phases)
      for (const Phase b : all_phases) {
        if (a >= b) continue;
        const auto x = seen(colour(a, 0, 1), kind), y = seen(colour(b, 0, 1), kind);
        const double distance = std::hypot(x[0] - y[0], x[1] - y[1], x[2] - y[2]);
        EXPECT_GT(distance, 0.12) << letter(a) << letter(b);
      }
}

TEST(Palette, LaterChunksAreLighter) {
  for (const Phase p : all_phases)
    for (int chunks = 2; chunks <= 4; ++chunks)
      for (int c = 1; c < chunks; ++c)
        EXPECT_GT(lightness(colour(p, c, chunks)), lightness(colour(p, c - 1, chunks)) + 0.5);
  EXPECT_EQ(colour(Phase::F, 0, 4), colour(Phase::F, 0, 1));
  EXPECT_EQ(colour(Phase::F, 9, 4), colour(Phase::F, 3, 4));
}

TEST(Palette, InkIsReadable) {
  for (const Phase p : all_phases)
    for (int c = 0; c < 4; ++c) {
      const Rgb fill = colour(p, c, 4);
      EXPECT_GT(std::abs(lightness(fill) - lightness(ink_on(fill))), 45);
    }
}

TEST(Palette, Codes) {
  EXPECT_EQ(hex({13, 92, 148}), "#0d5c94");
  EXPECT_EQ(hex(colour(Phase::F, 0, 1)), "#0d5c94");
  EXPECT_EQ(xterm256({255, 0, 0}), 196);
  EXPECT_EQ(xterm256({0, 0, 0}), 16);
  EXPECT_EQ(xterm256({128, 128, 128}), 244);
  EXPECT_EQ(mix({0, 0, 0}, {255, 255, 255}, 1), (Rgb{255, 255, 255}));
}

TEST(Escape, XmlKeepsGoodTextAndReplacesTheRest) {
  EXPECT_EQ(escape_xml("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(escape_xml("µ → 𝄞"), "µ → 𝄞");
  EXPECT_EQ(escape_xml(std::string_view("a\0\x1b\n", 4)), "a   ");
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(escape_xml("\xff|\xc3"), bad + "|" + bad);
  EXPECT_EQ(escape_xml("\xed\xa0\x80"), bad + bad + bad);  // a surrogate
  EXPECT_EQ(escape_xml("\xc0\xaf"), bad + bad);            // over-long
}

TEST(Escape, JsonIsAsciiAndSafeInsideScript) {
  EXPECT_EQ(quoted_json("a\"\\\n</script>µ"), R"("a\"\\\n\u003c/script>\u00b5")");
}

}  // namespace
}  // namespace stretto

#include "stretto/view/inner/palette.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace stretto {
namespace {

double linear(std::uint8_t c) {
  const double x = c / 255.0;
  return x <= 0.04045 ? x / 12.92 : std::pow((x + 0.055) / 1.055, 2.4);
}

std::uint8_t gamma(double x) {
  x = std::clamp(x, 0.0, 1.0);
  return std::uint8_t(std::lround(255 * (x <= 0.0031308 ? 12.92 * x : 1.055 * std::pow(x, 1 / 2.4) - 0.055)));
}

using Lab = std::array<double, 3>;

Lab oklab(Rgb c) {
  const double r = linear(c.r), g = linear(c.g), b = linear(c.b);
  const double l = std::cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const double m = std::cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const double s = std::cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return {0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
          1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
          0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s};
}

Rgb from_oklab(const Lab& c) {
  const double l = std::pow(c[0] + 0.3963377774 * c[1] + 0.2158037573 * c[2], 3);
  const double m = std::pow(c[0] - 0.1055613458 * c[1] - 0.0638541728 * c[2], 3);
  const double s = std::pow(c[0] - 0.0894841775 * c[1] - 1.2914855480 * c[2], 3);
  return {gamma(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
          gamma(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
          gamma(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s)};
}

double luminance(Rgb c) { return 0.2126 * linear(c.r) + 0.7152 * linear(c.g) + 0.0722 * linear(c.b); }

Rgb base(Phase p) {
  switch (p) {
    case Phase::F:
      return {0x0d, 0x5c, 0x94};  // blue, L* 37
    case Phase::B:
      return {0xd5, 0x5e, 0x00};  // vermillion, 53
    case Phase::R:
      return {0xce, 0x7c, 0xaa};  // reddish purple, 62
    case Phase::I:
      return {0xe6, 0x9f, 0x00};  // orange, 71
    case Phase::W:
      return {0xe9, 0xd7, 0x3e};  // yellow, 85
  }
  return {};
}

struct Shade {
  std::string_view name, light, dark;
};
constexpr Shade shades[] = {
    {"bg", "#ffffff", "#12161c"},       // paper
    {"fg", "#1c2430", "#e6e9ee"},       // ink
    {"label", "#3a4454", "#c5ccd6"},    // names of rows
    {"soft", "#667080", "#98a2b1"},     // numbers, remarks
    {"line", "#d5d9df", "#323a46"},     // borders, lines of time
    {"faint", "#e3e6ea", "#2a313c"},    // grids of curves
    {"panel", "#f7f8fa", "#191e26"},    // boxes of text
    {"row", "#f3f4f7", "#1f252e"},      // an actor's idle time
    {"memory", "#c9d2dd", "#3a4656"},   // curves of memory ...
    {"edge", "#7b8797", "#8593a6"},     // ... and their upper edge
    {"series0", "#0d5c94", "#5aa9e0"},  // curves
    {"series1", "#c8501e", "#f0905f"}, {"series2", "#2f7d4f", "#6fc493"},
};

const Shade& shade(std::string_view name) {
  return *std::find_if(std::begin(shades), std::end(shades), [&](const Shade& s) { return s.name == name; });
}

}  // namespace

std::string theme_variables() {
  std::string light, dark;
  for (const Shade& s : shades) {
    light += fmt::format(" --{}: {};", s.name, s.light);
    dark += fmt::format(" --{}: {};", s.name, s.dark);
  }
  return fmt::format("\n:root {{{} }}\n@media (prefers-color-scheme: dark) {{ :root {{{} }} }}", light, dark);
}

std::string theme_rules(std::initializer_list<ThemeRule> rules) {
  std::string light, dark;
  for (const ThemeRule& r : rules) {
    light += fmt::format("{}{{{}:{}}}", r.selector, r.property, shade(r.shade).light);
    dark += fmt::format("{}{{{}:{}}}", r.selector, r.property, shade(r.shade).dark);
  }
  return fmt::format("{}\n@media(prefers-color-scheme:dark){{{}}}\n", light, dark);
}

Rgb mix(Rgb a, Rgb b, double share) {
  const Lab x = oklab(a), y = oklab(b);
  return from_oklab({x[0] + share * (y[0] - x[0]), x[1] + share * (y[1] - x[1]), x[2] + share * (y[2] - x[2])});
}

Rgb colour(Phase phase, int chunk, int chunks) {
  if (chunk <= 0 || chunks <= 1) return base(phase);
  return mix(base(phase), {255, 255, 255}, 0.43 * std::min(chunk, chunks - 1) / (chunks - 1));
}

Rgb colour(Lane lane) {
  switch (lane) {
    case Lane::compute:
      return {0x5b, 0x63, 0x70};
    case Lane::message:
      return {0x56, 0xb4, 0xe9};
    case Lane::collective:
      return {0x00, 0x9e, 0x73};
    case Lane::other:
      return {0x8b, 0x93, 0xa1};
  }
  return {};
}

Rgb ink_on(Rgb background) {
  const double y = luminance(background);  // contrast with white against contrast with black
  return 1.05 / (y + 0.05) >= (y + 0.05) / 0.05 ? Rgb{255, 255, 255} : Rgb{0, 0, 0};
}

double lightness(Rgb c) {
  const double y = luminance(c);
  return y > 216.0 / 24389 ? 116 * std::cbrt(y) - 16 : y * 24389 / 27;
}

std::string hex(Rgb c) { return fmt::format("#{:02x}{:02x}{:02x}", c.r, c.g, c.b); }

int xterm256(Rgb c) {
  constexpr std::array<int, 6> levels{0, 95, 135, 175, 215, 255};
  const auto nearest = [&](int v) {
    int best = 0;
    for (int i = 1; i < 6; ++i)
      if (std::abs(levels[i] - v) < std::abs(levels[best] - v)) best = i;
    return best;
  };
  const auto distance = [&](int r, int g, int b) {
    return (r - c.r) * (r - c.r) + (g - c.g) * (g - c.g) + (b - c.b) * (b - c.b);
  };
  const int r = nearest(c.r), g = nearest(c.g), b = nearest(c.b);
  const int grey = std::clamp((c.r + c.g + c.b) / 3, 8, 238), step = (grey - 8) / 10, level = 8 + 10 * step;
  if (distance(level, level, level) < distance(levels[r], levels[g], levels[b])) return 232 + step;
  return 16 + 36 * r + 6 * g + b;
}

}  // namespace stretto

// The colours of all pictures and pages. Of bars: one hue and one lightness per phase (after Okabe and Ito, so that
// colour-blind readers and grey printers tell them apart), lighter for later chunks of the same actor.
//
//   hex(colour(Phase::F, 0, 1)) == "#0d5c94"
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "stretto/schedule/timeline.h"

namespace stretto {

struct Rgb {
  std::uint8_t r = 0, g = 0, b = 0;
  bool operator==(const Rgb&) const = default;
};

Rgb colour(Phase, int chunk, int chunks);
Rgb colour(Lane);                          // of spans without an action
Rgb mix(Rgb a, Rgb b, double share_of_b);  // in a perceptual space
Rgb ink_on(Rgb background);                // black or white, whichever reads better
double lightness(Rgb);                     // CIE L*, 0 to 100
std::string hex(Rgb);
int xterm256(Rgb);  // the nearest of the terminal's 256 colours

// Of what is neither a phase nor a lane, by turns.
constexpr std::array<std::string_view, 12> hues{"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9",
                                                "#7a5195", "#6b7280", "#8c6d31", "#2f4b7c", "#a3b18a", "#b0b7c3"};

// Paper and ink in light and in dark surroundings, by name: bg fg label soft line faint panel row memory edge series0
// to series2.
std::string theme_variables();  // as variables of a page: var(--soft)
struct ThemeRule {
  std::string_view selector, property, shade;
};
std::string theme_rules(std::initializer_list<ThemeRule>);  // written out, for a picture that stands alone

}  // namespace stretto

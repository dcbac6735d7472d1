// The colours of all pictures: one hue and one lightness per phase (after Okabe and Ito, so that colour-blind readers
// and grey printers tell them apart), lighter for later chunks of the same actor.
//
//   hex(colour(Phase::F, 0, 1)) == "#0d5c94"
#pragma once
#include <cstdint>
#include <string>

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

}  // namespace stretto

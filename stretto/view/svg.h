// Timelines as one SVG picture, stacked on a common time axis.
//
//   write("1f1b.svg", svg(timeline));
#pragma once
#include <span>
#include <string>

#include "stretto/schedule/timeline.h"
#include "stretto/view/scene.h"

namespace stretto {

struct SvgOptions {
  int width = 0;  // pixels; 0: as many as the shortest action needs to be read, within reason
  Clock clock = Clock::units;
  bool memory = false;  // a curve under each actor
};

std::string svg(std::span<const Timeline>, const SvgOptions& = {});
std::string svg(const Timeline&, const SvgOptions& = {});

}  // namespace stretto

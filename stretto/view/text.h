// A timeline as a Gantt chart of characters, for terminals and logs.
//
//   fmt::print("{}", gantt_text(timeline, options_for(stdout)));
//
//   actor 0  F0F1    B0--  B1--
//   actor 1    F0B0--F1B1--
#pragma once
#include <cstdio>
#include <string>

#include "stretto/schedule/timeline.h"
#include "stretto/view/scene.h"

namespace stretto {

struct TextOptions {
  enum class Colour : std::uint8_t { none, ansi256, rgb };
  int width = 140;  // no line is longer; at least 40 are taken
  Colour colour = Colour::none;
  Clock clock = Clock::units;
  bool lanes = false;  // messages and collectives on lines of their own
  bool fold = false;   // breaks the time axis into as many panels as it takes to number every action
};

// The width of the terminal behind `stream` and the colours it understands; plain when it is none, or NO_COLOR is set.
TextOptions options_for(std::FILE* stream);

std::string gantt_text(const Timeline&, const TextOptions& = {});

}  // namespace stretto

// Timelines as one self-contained page: zoom, hover (what, from when to when, what it waited for), memory under each
// actor, several timelines on one time axis with their difference per kind of action.
//
//   write("cmp.html", html(std::vector{simulated, measured}, {.clock = Clock::seconds}));
#pragma once
#include <span>
#include <string>

#include "stretto/schedule/timeline.h"
#include "stretto/view/scene.h"

namespace stretto {

struct HtmlOptions {
  std::string title = {};  // of the page; "": the timelines' titles
  Clock clock = Clock::units;
};

std::string html(std::span<const Timeline>, const HtmlOptions& = {});
std::string html(const Timeline&, const HtmlOptions& = {});

}  // namespace stretto

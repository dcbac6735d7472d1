// How long the phases of a stage take, in any one unit; what builders, simulator and emulated device share.
//
//   Times t{.F = 1, .I = 1, .W = 1, .message = 0.1};
#pragma once

namespace stretto {

struct Times {
  double F = 1, I = 1, W = 1;  // one full stage per actor; a builder with v chunks per actor divides by v
  double message = 0;          // latency of one message between two actors
  bool operator==(const Times&) const = default;
};

}  // namespace stretto

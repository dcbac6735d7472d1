#include "stretto/comm/emulated_clock.h"

#include <algorithm>
#include <optional>

#include "stretto/base/clock.h"

namespace stretto {
namespace {

thread_local std::optional<double> behind;  // none: nobody asked

}  // namespace

double emulated_now() { return now() - behind.value_or(0); }

double pass_until(double time, const StopFlag& stopped) {
  double slept = 0;
  for (double from = now(); from < time;) {
    stopped.check();
    sleep_until(std::min(time, from + 0.02));
    slept += now() - from;
    from = now();
  }
  if (behind) behind = now() - time;
  return slept;
}

void make_up_for_delays() { behind = 0; }

}  // namespace stretto

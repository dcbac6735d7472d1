#include "stretto/run/inner/busy.h"

#include <filesystem>
#include <fstream>

#include "stretto/base/text.h"

namespace stretto {
namespace {

constexpr i64 fewest_steps = 5;
constexpr double least_seconds = 2;    // a run that is shorter needs no advice
constexpr double much_waiting = 0.25;  // of the time in which threads could have run
constexpr double much_longer = 1.5;    // than predicted
constexpr double nanoseconds = 1e-9;

}  // namespace

CoreTime core_time() {
  CoreTime sum;
  std::error_code wrong;
  for (std::filesystem::directory_iterator at("/proc/self/task", wrong); !wrong && at != decltype(at)();
       at.increment(wrong)) {
    double ran = 0, waited = 0;
    if (std::ifstream(at->path() / "schedstat") >> ran >> waited) {
      sum.ran += ran * nanoseconds;
      sum.waited += waited * nanoseconds;
    }
  }
  return sum;
}

std::optional<std::string> BusyMachine::after(i64 steps, double seconds, const CoreTime& now) {
  if (told_ || steps < fewest_steps || seconds < least_seconds) return std::nullopt;
  const double ran = now.ran - start_.ran, waited = now.waited - start_.waited, each = seconds / steps;
  if (waited < much_waiting * (ran + waited) || each < much_longer * predicted_) return std::nullopt;
  told_ = true;
  return fmt::format(
      "busy     other programs use the cores: this run's threads have waited for one {:.0f}% of the time, and a step "
      "takes {} instead of {}",
      100 * waited / (ran + waited), human_seconds(each), human_seconds(predicted_));
}

}  // namespace stretto

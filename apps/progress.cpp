#include "progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "stretto/run/console.h"

namespace stretto::app {

Progress::Progress(std::string what)
    : what_(std::move(what)), terminal_(isatty(fileno(stderr)) == 1), start_(std::chrono::steady_clock::now()) {}

Progress::~Progress() {
  if (drawn_) std::fputs("\r\033[K", stderr);
}

double Progress::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void Progress::show(double done, double of, std::string_view note) {
  const auto now = std::chrono::steady_clock::now();
  if (!terminal_ || now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  const double part = of > 0 ? std::clamp(done / of, 0.0, 1.0) : 1;
  const int full = part * 30;
  const double left = part > 0 ? seconds() / part * (1 - part) : 0;
  fmt::print(stderr, "\r\033[K{} [{:<30}] {:>3.0f}%  {} left  {}", what_,
             std::string(full, '=') + (full < 30 ? ">" : ""), part * 100, remaining(left), note);
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace stretto::app

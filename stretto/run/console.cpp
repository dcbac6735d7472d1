#include "stretto/run/console.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "stretto/base/fd.h"
#include "stretto/base/text.h"

namespace stretto {
namespace {

int columns(std::FILE* out) {
  winsize size{};
  return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// A terminal's colours are not for a file: "\033[31m" and the like are left out.
std::string without_colours(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\033')
      plain += text[i];
    else
      i = std::min(text.find('m', i), text.size());
  }
  return plain;
}

}  // namespace

std::string row_header(const ConsoleRow& r) {
  return fmt::format("{:>8} {:>10} {:>10} {:>10} {:>9} {:>5}{}{}{} {:>10}", "step", "loss", "grad_norm", "lr", "tok/s",
                     "mfu%", r.bubble ? " bubble%" : "", r.imbalance ? "  uneven" : "", r.dropped ? "   drop%" : "",
                     "mem");
}

std::string row_text(const ConsoleRow& r) {
  const auto number = [](double v, int digits) { return std::isnan(v) ? "-" : fmt::format("{:.{}f}", v, digits); };
  std::string text = fmt::format("{:>8} {:>10} {:>10} {:>10.3e} {:>9.0f} {:>5}", r.step, number(r.loss, 5),
                                 number(r.grad_norm, 4), r.lr, r.tokens_per_second, number(100 * r.mfu, 1));
  if (r.bubble) text += fmt::format(" {:>7.1f}", 100 * *r.bubble);
  if (r.imbalance) text += fmt::format(" {:>6.2f}x", *r.imbalance);
  if (r.dropped) text += fmt::format(" {:>7.1f}", 100 * *r.dropped);
  text += fmt::format(" {:>10}", human_bytes(r.memory));
  if (r.validation) text += fmt::format("   validation loss {:.5f}", *r.validation);
  return text;
}

std::string remaining(double s) {
  return s < 100 ? fmt::format("{:.0f} s", std::ceil(std::max(s, 0.0))) : human_seconds(s);
}

std::string bar_text(i64 step, i64 steps, double seconds_left, int width) {
  const double done = steps > 0 ? std::clamp(1.0 * step / steps, 0.0, 1.0) : 1;
  const std::string words =
      fmt::format(" {:>3.0f}%  step {}/{}  {} left", std::floor(done * 100), step, steps, remaining(seconds_left));
  const int room = std::min<int>(40, width - std::ssize(words) - 2);
  if (room < 4) return words.substr(0, std::max(width, 0));
  const int full = done * room;
  return fmt::format("[{}{}{}]{}", std::string(full, '='), full < room ? ">" : "",
                     std::string(std::max(0, room - full - 1), ' '), words);
}

Console::Console(std::FILE* out, Verbosity verbosity)
    : out_(out), verbosity_(verbosity), terminal_(isatty(fileno(out)) == 1) {}

Console::~Console() {
  close();
  if (log_) std::fclose(log_);
}

// The run goes on without a log if it cannot be written: metrics and console have what matters.
void Console::log_to(const std::filesystem::path& file) {
  // Without O_NONBLOCK a pipe in its place would be waited for until somebody reads it.
  Fd opened(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666));
  struct stat info {};
  if (opened && ::fstat(opened.get(), &info) == 0 && S_ISREG(info.st_mode)) log_ = ::fdopen(opened.get(), "a");
  if (log_) opened.release();  // closed along with the stream
  const std::string said = std::move(before_);
  if (log_) std::fputs(said.c_str(), log_), std::fflush(log_);
  logs_ = log_ != nullptr;
  if (!logs_) say(fmt::format("note: {} cannot be written; the run goes on without it", file.string()));
}

void Console::log(std::string_view said) {
  const std::string line = without_colours(said);
  if (!logs_) return;
  if (!log_) return void(before_.append(line).append("\n"));
  std::fwrite(line.data(), 1, line.size(), log_);
  std::fputc('\n', log_);
  std::fflush(log_);
}

void Console::clear() {
  if (drawn_) std::fputs("\r\033[K", out_);
  drawn_ = false;
}

void Console::say(std::string_view line) {
  log(line);
  if (verbosity_ != Verbosity::quiet) print(line);
}

void Console::detail(std::string_view line) {
  log(line);
  if (verbose()) print(line);
}

void Console::result(std::string_view line) {
  log(line);
  print(line);
}

void Console::print(std::string_view line) {
  clear();
  std::fwrite(line.data(), 1, line.size(), out_);
  std::fputc('\n', out_);
  std::fflush(out_);
}

void Console::row(const ConsoleRow& r) {
  if (!headed_) say(row_header(r));
  headed_ = true;
  say(row_text(r));
}

void Console::progress(i64 step, i64 steps, double seconds_left) {
  const auto now = std::chrono::steady_clock::now();
  if (!terminal_ || verbosity_ == Verbosity::quiet || now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  clear();
  std::fputs(bar_text(step, steps, seconds_left, columns(out_) - 1).c_str(), out_);
  std::fflush(out_);
  drawn_ = true;
}

void Console::close() {
  clear();
  std::fflush(out_);
}

}  // namespace stretto

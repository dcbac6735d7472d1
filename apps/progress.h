// How far a command is, drawn again and again on the last line of the terminal; nothing when there is none.
//
//   Progress progress("tokenizing");
//   progress.show(done, of, "12 MB/s");
#pragma once
#include <chrono>
#include <string>
#include <string_view>

namespace stretto::app {

class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();  // takes the line away
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void show(double done, double of, std::string_view note = {});  // at most ten times a second
  double seconds() const;                                         // since the start

 private:
  std::string what_;
  bool terminal_, drawn_ = false;
  std::chrono::steady_clock::time_point start_, last_{};
};

}  // namespace stretto::app

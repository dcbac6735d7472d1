// What ranks print: whole lines go to the rank's log and, with the rank in front if wanted, to the console.
//
//   Screen out(1);
//   Stream stream(std::move(pipe), &out, "[3] ", log);
//   stream.read_some();
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "stretto/base/fd.h"

namespace stretto {

// What nobody takes waits, and whoever writes it goes on: a terminal may stand still.
class Screen {
 public:
  explicit Screen(int fd) : fd_(fd) {}
  void put(std::string_view text);
  bool full() const { return waiting_.size() > most_waiting; }  // nothing more should be put
  std::optional<int> fd() const { return waiting_.empty() ? std::nullopt : std::optional(fd_); }  // to poll for writing
  void write_some();                                     // when it can be written to
  void write_rest();                                     // waits
  const std::error_code& lost() const { return lost_; }  // why something could not be shown to who reads it, if so

 private:
  static constexpr std::size_t most_waiting = 1 << 20;
  int fd_;
  bool open_ = true;  // false: nobody reads it any more, or it cannot be written to
  std::error_code lost_;
  std::string waiting_;
};

class Stream {
 public:
  Stream() = default;                                               // has ended
  Stream(Fd fd, Screen* screen, std::string prefix, const Fd& log)  // console: null when it is not shown
      : fd_(std::move(fd)), screen_(screen), prefix_(std::move(prefix)), log_(&log) {}
  // To poll; none: it has ended, or the console takes no more.
  std::optional<int> fd() const {
    return fd_ && !(screen_ && screen_->full()) ? std::optional(fd_.get()) : std::nullopt;
  }
  const std::string& last_line() const { return last_; }
  void read_some();  // what is there; waits if nothing is
  void read_rest();  // without waiting: whoever wrote has ended

 private:
  void put(const std::string& line);
  Fd fd_;
  Screen* screen_ = nullptr;
  std::string prefix_, line_, last_;
  const Fd* log_ = nullptr;
};

}  // namespace stretto

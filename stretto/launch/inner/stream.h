// One of a rank's two streams: whole lines go to its log and, with the rank in front if wanted, to the console.
//
//   Stream out(fd, stdout, "[3] ", log);
//   while (out.read_some()) poll(...);
#pragma once
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>

namespace stretto {

class Stream {
 public:
  Stream(int fd, std::FILE* console, std::string prefix, std::ofstream& log)  // console: null when it is not shown
      : fd_(fd), console_(console), prefix_(std::move(prefix)), log_(log) {}
  std::optional<int> fd() const { return open_ ? std::optional(fd_) : std::nullopt; }  // none: it has ended
  const std::string& last_line() const { return last_; }
  void read_some();  // what is there; waits if nothing is
  void read_rest();  // without waiting: whoever wrote has ended

 private:
  void put(const std::string& line);
  int fd_;
  bool open_ = true;
  std::FILE* console_;
  std::string prefix_, line_, last_;
  std::ofstream& log_;
};

}  // namespace stretto

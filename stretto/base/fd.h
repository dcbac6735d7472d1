// A file descriptor that closes itself. Nobody else writes the system's -1 for "none".
//
//   Fd file(::open("a.txt", O_RDONLY | O_CLOEXEC));
//   if (!file) throw file_error("a.txt", "opened", last_error());
//   ::read(file.get(), bytes, count);
#pragma once
#include <optional>
#include <span>
#include <utility>

namespace stretto {

class Fd {
 public:
  Fd() = default;                   // none
  explicit Fd(int fd) : fd_(fd) {}  // as a system call returns it: a negative one is none, and errno says why
  ~Fd() { close(); }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, none)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  explicit operator bool() const { return fd_ >= 0; }
  int get() const { return fd_; }                                          // for a system call
  int release() { return std::exchange(fd_, none); }                       // whoever gets it closes it
  bool close();                                                            // false: errno says what was not written
  static int or_none(std::optional<int> fd) { return fd.value_or(none); }  // for poll, which passes over none

 private:
  static constexpr int none = -1;
  int fd_ = none;
};

// What a program that this process becomes shall find open, and under which numbers.
struct FdMove {
  int from, to;
};
// All of them at once: a number may be another's source, or its own. For a child between fork and exec.
bool move_fds(std::span<const FdMove>);

}  // namespace stretto

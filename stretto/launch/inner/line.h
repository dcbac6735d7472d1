// The line between a launch and the processes that guard its ranks. It is an abstract socket: it has no file, it is
// gone with whoever opened it, and both ends ask the kernel who the other is: nobody but the same user is heard. mpirun
// stands between the two processes and hands on no descriptors (Open MPI), so the socket's name goes along in the
// arguments.
//
//   Switchboard board;                                   // the launch
//   Line line = Line::to(name);                          // a guardian: a name is board.name()
//   line.tell({.kind = Word::Kind::begins, .rank = 3});
//   line.command();                                      // Command::go
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>

#include "stretto/base/fd.h"

namespace stretto {

// What a guardian tells.
struct Word {
  enum class Kind { begins, said, ended };
  Kind kind = Kind::begins;
  int rank = 0;
  int number = 0;         // said: the exit code that the rank is about to end with; ended: as waitpid gave it
  double time = 0;        // steady clock
  bool told = false;      // ended: at the request of others
  std::string text = "";  // said: why; ended: the last line of its standard error
};
// What it is told: start the rank, have it end after its step, end it at once.
enum class Command : char { go = 'g', stop = 's', end = 'e' };

class Line {
 public:
  Line() = default;  // to nobody
  explicit Line(Fd fd) : fd_(std::move(fd)) {}
  static Line to(const std::string& name);  // an Error when nobody of this user listens there

  std::optional<int> fd() const { return open() ? std::optional(fd_.get()) : std::nullopt; }
  bool open() const { return bool(fd_); }
  void close() { fd_.close(); }
  pid_t other() const { return other_; }  // the process at the other end, as the kernel says

  // Whether somebody is there to hear it. A launch waits for no guardian.
  bool tell(const Word&) const;
  bool tell(Command) const;
  // None: the other end is closed. They wait until something comes.
  std::optional<Word> word() const;
  std::optional<Command> command() const;

 private:
  friend class Switchboard;
  bool same_user();  // fills in other_
  Fd fd_;
  pid_t other_ = 0;
};

// Where guardians call.
class Switchboard {
 public:
  Switchboard();
  const std::string& name() const { return name_; }
  int fd() const { return fd_.get(); }
  std::optional<Line> accept() const;  // none: nobody calls, or another user did

 private:
  std::string name_;
  Fd fd_;
};

}  // namespace stretto

// Pipes, processes and whole reads, with Errors that say which limit was met.
//
//   Pipe pipe;
//   const pid_t child = start_process([&] { dup2(pipe.in.get(), 1), execute({"/bin/true"}); });
//   Poll poll;
//   poll.to_read(pipe.out.get(), [&] { read_into(text, pipe.out.get()); });
//   poll.wait(0.1);
#pragma once
#include <poll.h>
#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stretto/base/fd.h"

namespace stretto {

struct Pipe {  // not inherited over exec; an Error when there are too many open files
  Pipe();
  Fd out, in;
};

// What to do when descriptors are ready, once.
class Poll {
 public:
  using Call = std::function<void()>;
  void to_read(std::optional<int> fd, Call call) { add(fd, POLLIN, std::move(call)); }  // none is passed over
  void to_write(std::optional<int> fd, Call call) { add(fd, POLLOUT, std::move(call)); }
  void wait(double seconds);  // at most; makes the calls

 private:
  void add(std::optional<int> fd, short event, Call);
  std::vector<pollfd> fds_;
  std::vector<Call> calls_;
};

// A child that does this and ends; what was printed before is flushed. It does not inherit how we handle signals: there
// they have their usual effect. Where `work` throws it says so and ends with code 127.
pid_t start_process(const std::function<void()>& work);
// In a child; the first word is a path. Without an environment it has ours.
[[noreturn]] void execute(std::vector<std::string> command, std::optional<std::vector<std::string>> environment = {});

// Made when there is none. A link is not followed: whoever has put it there may lead us to a file of somebody else's.
Fd open_log(const std::filesystem::path&, int flags);

bool read_into(std::string&, int fd);  // waits for something and adds it; false: it has ended
Fd end_of(pid_t process);              // there is something to read when it has ended; none: the system has no such
int wait_for(pid_t child);             // its status, as waitpid gives it
int code_of(int status);               // as a shell says it: 128 + signal for one that was killed

}  // namespace stretto

// Pipes, processes and whole reads, with Errors that say which limit was met.
//
//   Pipe pipe;
//   if (const pid_t child = new_process(); child == 0) dup2(pipe.in.get(), 1), execute({"/bin/true"});
#pragma once
#include <poll.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "stretto/base/fd.h"

namespace stretto {

struct Pipe {  // not inherited over exec; an Error when there are too many open files
  Pipe();
  Fd out, in;
};

// fork, after flushing what was printed. The child does not inherit how we handle signals: there they have their usual
// effect.
pid_t new_process();
[[noreturn]] void execute(std::vector<std::string> command);  // in a child; the first word is a path

bool read_into(std::string&, int fd);   // waits for something and adds it; false: it has ended
pollfd to_read(std::optional<int> fd);  // for poll, which passes over none
Fd end_of(pid_t process);               // there is something to read when it has ended; none: the system has no such
int wait_for(pid_t child);              // its status, as waitpid gives it
int code_of(int status);                // as a shell says it: 128 + signal for one that was killed

}  // namespace stretto

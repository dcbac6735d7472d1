// Where ranks begin. A rank must be started by mpirun, and its parent should be the launch: only a parent has its
// streams, hears from the system how it ended, and takes it along when it dies. So mpirun starts a process that holds
// the rank's place: it hands the launch what mpirun has given it, over an abstract socket (which has no file and is
// gone with the launch), and ends as the rank does. mpirun hands on no descriptors, so the socket's name goes along in
// the arguments; but only processes that descend from this launch's mpirun are let in.
//
//   Places places;                                                    // the launch
//   start_mpirun(options, places.name());
//   if (auto place = places.next(mpirun)) start_rank(*place, ...);
//   return hold_place(name, rank);                                    // launch.h: in what mpirun has started
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "stretto/base/fd.h"

namespace stretto {

struct Place {
  int rank = 0;
  pid_t holder = 0;
  Fd line;                 // ends when the holder does; takes the rank's exit code
  Fd input;                // of the rank, as mpirun has it
  std::optional<Fd> wire;  // to MPICH's mpirun: its number stands in PMI_FD
};
void leave(Place&, int code);  // the rank has ended so
// In a child: binding and limits that mpirun has given the holder.
void adopt_limits(const Place&);
// What mpirun has given the holder, with our PATH: Open MPI puts its own folder first, and a rank looks for python3.
std::vector<std::string> environment_of(const Place&);

class Places {
 public:
  Places();
  const std::string& name() const { return name_; }
  int fd() const { return fd_.get(); }
  std::optional<Place> next(pid_t mpirun) const;  // none: nobody calls, or somebody whom mpirun has not started

 private:
  std::string name_;
  Fd fd_;
};

}  // namespace stretto

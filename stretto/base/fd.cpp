#include "stretto/base/fd.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace stretto {

bool Fd::close() { return fd_ < 0 || ::close(release()) == 0; }

bool move_fds(std::span<const FdMove> moves) {
  int above = 0;
  for (const FdMove& m : moves) above = std::max(above, m.to + 1);
  std::vector<Fd> sources;  // where no target is
  for (const FdMove& m : moves) sources.emplace_back(fcntl(m.from, F_DUPFD_CLOEXEC, above));
  for (std::size_t i = 0; i < moves.size(); ++i)
    if (dup2(sources[i].get(), moves[i].to) < 0) return false;
  return true;
}

}  // namespace stretto

#include "stretto/base/fd.h"

#include <unistd.h>

namespace stretto {

bool Fd::close() { return fd_ < 0 || ::close(release()) == 0; }

}  // namespace stretto

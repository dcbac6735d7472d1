#include "stretto/schedule/builders/common.h"
#include "stretto/schedule/builders/interleaved.h"

namespace stretto::builders {

// One more forward in flight lets the message of every forward travel while its receiver still has work.
Schedule kimi_k2(const Request& r) { return interleave(r, "kimi-k2", 1); }

}  // namespace stretto::builders

#include "stretto/schedule/builders/common.h"
#include "stretto/schedule/builders/interleaved.h"

namespace stretto::builders {

Schedule interleaved_1f1b(const Request& r) { return interleave(r, 0); }

}  // namespace stretto::builders

// The row that ZB-H1 and ZB-H2 share: forwards, then pairs of input gradient and forward without weight gradients, then
// the cycle I, W, F. What is exhausted is skipped, so that few microbatches work too.
#pragma once
#include "stretto/schedule/schedule.h"

namespace stretto::builders {

void fill_zb_h(Row& row, int stage, int forwards, int pairs, const Request&);

}  // namespace stretto::builders

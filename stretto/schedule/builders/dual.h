// The row that DualPipe and DualPipe-V share: two flows of microbatches that meet on an actor, `near` entering the
// pipeline beside it and `far` coming from the other end.
#pragma once
#include "stretto/schedule/schedule.h"

namespace stretto::builders {

struct Flow {
  int pipe, stage, first;  // the flow's microbatches are first, first + 1, ...
};

// Actors count from the end where `near` enters (0) to the middle (half - 1). Needs microbatches >= 2 half.
void fill_dual(Row& row, int actor, int half, int microbatches, const Flow& near, const Flow& far);

}  // namespace stretto::builders

// The first part of validate(): rows, stages, microbatches and placement, before any action is looked at.
//
//   check_shape(schedule, {.actors = 4}, validation);
#pragma once
#include "stretto/schedule/validate.h"

namespace stretto {

void check_shape(const Schedule&, const ValidateOptions&, Validation&);

}  // namespace stretto

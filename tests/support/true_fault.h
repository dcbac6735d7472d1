// Whether a finding is true, told from the rows by plain search. For tests of the validator.
#pragma once
#include "stretto/schedule/validate.h"

namespace stretto {

bool is_true(const Schedule&, const Finding&, const ValidateOptions& = {});

}  // namespace stretto

// The stages of a compiled program as text: what each computes, holds and keeps, and a check that nothing of the model
// is left out.
//
//   fmt::print("{}", stages_str(compiled));
#pragma once
#include <string>

#include "stretto/compile/compile.h"

namespace stretto {

std::string stages_str(const Compiled&);

// Pieces that no stage takes, parameters that no stage reads, trained parameters without a gradient: none, or the
// program does not train the model.
std::vector<Fault> verify_stages(const Compiled&);

}  // namespace stretto

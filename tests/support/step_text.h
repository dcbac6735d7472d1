// A step's tasks as short lines, for tests that are written by hand:
//
//   EXPECT_THAT(lines(step), ElementsAre("F0: input0 param0 -> value0 | contract", ...));
#pragma once
#include <string>
#include <vector>

#include "stretto/step/step.h"

namespace stretto::test {

std::string text(const Binding&);
std::string line(const Task&);                 // part, piece, bindings, ops of the body
std::vector<std::string> lines(const Step&);   // of all tasks
std::vector<std::string> values(const Step&);  // "value0: F0 -> F1 I1"

}  // namespace stretto::test

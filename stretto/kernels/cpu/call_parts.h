// A kernel call cut into calls that the threads of a rank make side by side, each of a part of the memory: along a dim
// that all results have and along which, as the op's entry says, they do not depend on each other (Op::spread). The
// kernel is that of the whole, so every element has the bits that it has in the whole.
//
//   std::vector<CallPart> parts = parts_of(call, 4);        // empty: it is not cut
//   Runner run = prepare_in_parts(kernel, call, team);      // they share the work
#pragma once
#include <vector>

#include "stretto/kernels/kernel.h"

namespace stretto {

struct CallPart {
  Call call;
  std::vector<i64> in, out;  // bytes from where the whole's operands and results begin
};
std::vector<CallPart> parts_of(const Call&, int most);

Runner prepare_in_parts(const Kernel&, const Call&, const Team&);

}  // namespace stretto

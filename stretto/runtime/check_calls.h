// Every kernel call of a program, made by a device twice and once by the CPU on the same random numbers: the device's
// results are equal bit for bit, and the CPU's to rounding.
//
//   const CallCheck c = check_calls(program, *device);          // Error: the first call that is wrong
//   fmt::print("{} calls of {} ops\n", c.calls, c.ops);
//
// Calls with whole numbers that are no ids are left out: not everything means something to them.
#pragma once
#include <string>

#include "stretto/kernels/device.h"
#include "stretto/program/program.h"

namespace stretto {

struct CallCheck {
  int calls = 0, left_out = 0, ops = 0;
  double worst = 0;      // difference from the CPU, as a share of the result's largest element
  std::string worst_op;  // whose
};
CallCheck check_calls(const Program&, Device&);

}  // namespace stretto

// Pauses of a kernel's loop, about two in a millisecond: whoever computes for long lets messages move on.
//
//   Pauses pauses(args);
//   for (i64 row = 0; row < rows; ++row, pauses.after(n)) ...
#pragma once
#include "stretto/kernels/kernel.h"

namespace stretto {

class Pauses {
 public:
  explicit Pauses(const Args& args) : args_(args) {}
  void after(i64 elements) {
    if ((left_ -= elements) > 0) return;
    left_ = elements_between;
    args_.pause();
  }

 private:
  static constexpr i64 elements_between = 1 << 19;
  const Args& args_;
  i64 left_ = elements_between;
};

}  // namespace stretto

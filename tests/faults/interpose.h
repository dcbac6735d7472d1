// System calls of the file layer, counted; the n-th can end the process or fail. They stand in front of the C library's
// for everything in the test program.
//
//   FileCalls::at(3, FileCalls::kill);    // the third call from now on ends the process before it does anything
#pragma once
#include <cerrno>

namespace stretto::test {

struct FileCalls {
  enum What { nothing, kill, fail, shorten };
  static void at(long n, What, int error = ENOSPC);  // `fail`: that call and all later ones that write
  static long count();                               // since the last at()
};

}  // namespace stretto::test

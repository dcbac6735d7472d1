// A process of its own, for what a test must not do to itself: limits, another user, signals.
//
//   const Ended e = in_child([] { limit(RLIMIT_AS, 1 << 28); work(); });
//   EXPECT_EQ(e.code, 0) << e.error;
#pragma once
#include <sys/resource.h>

#include <functional>
#include <string>

namespace stretto::test {

struct Ended {
  int code = -1;      // 128 + the signal, when one ended it
  std::string error;  // what it wrote to standard error, and the text of the exception that ended it with code 99
};
Ended in_child(const std::function<void()>&);

void limit(decltype(RLIMIT_AS) what, rlim_t most);  // the soft limit only
// A user without rights, of whom there are no other processes. False: we are not root, the test is to be skipped.
bool can_become_nobody();
void become_nobody();

}  // namespace stretto::test

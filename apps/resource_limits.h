// What the system allows this process, looked at before anything else.
//
//   int main() { meet_limits(); ... }
#pragma once

namespace stretto::app {

// A file that grows too large is an error like a full disk, not a signal. Error: the stack is too small for anything.
void meet_limits();

// Freed memory stays with this process. Predictions make and free many times as much as they ever hold, and pages that
// go to the system and come back take longer than most of what is done with them.
void keep_freed_memory();

}  // namespace stretto::app

// What the system allows this process, looked at before anything else.
//
//   int main(int, char** argv) { meet_limits(argv); ... }
#pragma once

namespace stretto::app {

// A file that grows too large is an error like a full disk, not a signal. A limit on address space keeps the BLAS
// library from starting threads of its own: each would ask for memory that it does not get, without end. Error: the
// stack is too small for anything.
void meet_limits(char** argv);

// Freed memory stays with this process. Predictions make and free many times as much as they ever hold, and pages that
// go to the system and come back take longer than most of what is done with them.
void keep_freed_memory();

// The BLAS library starts with threads of its own, which look for work on every core for as long as a prediction takes
// before they sleep. Whoever makes products starts them again.
void end_idle_threads();

}  // namespace stretto::app

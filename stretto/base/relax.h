// For loops that look again and again at memory that another core writes: the core rests for a moment, and what else
// runs on it goes on.
//
//   while (!there()) relax();
#pragma once

namespace stretto {

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace stretto

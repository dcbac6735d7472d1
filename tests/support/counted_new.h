// Counts what the program allocates. It replaces operator new: include it in one .cpp of a test program.
//
//   const long before = allocations;   run();   EXPECT_EQ(allocations, before);
//   fails_at = allocations + 3;                           // the third one from now on finds no memory
#pragma once
#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<long> allocations{0}, fails_at{0};
}

[[gnu::noinline]] void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
  if (++allocations == fails_at) return nullptr;
  return std::malloc(n ? n : 1);
}
[[gnu::noinline]] void* operator new(std::size_t n) {
  if (void* p = operator new(n, std::nothrow)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }

#include "faults/interpose.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace {

using stretto::test::FileCalls;

std::atomic<long> calls{0}, target{-1};
std::atomic<int> what{FileCalls::nothing}, reason{0};

// Whether this call should fail.
bool counted() {
  const long n = ++calls;
  if (target < 0 || n < target) return false;
  if (what == FileCalls::kill) _exit(77);
  if (what == FileCalls::fail) errno = reason;
  return what == FileCalls::fail;
}

}  // namespace

namespace stretto::test {

void FileCalls::at(long n, What w, int error) {
  calls = 0;
  what = w;
  reason = error;
  target = w == nothing ? -1 : n;
}
long FileCalls::count() { return calls; }

}  // namespace stretto::test

extern "C" {

ssize_t pwrite(int file, const void* data, size_t bytes, off_t offset) {
  if (counted()) return -1;
  if (what == FileCalls::shorten && bytes > 1) bytes = (bytes + 1) / 2;
  if (what == FileCalls::kill && target - calls == 1 && bytes > 1) bytes /= 2;  // killed in the midst of it
  return syscall(SYS_pwrite64, file, data, bytes, offset);
}
int fsync(int) { return counted() ? -1 : 0; }  // the machine goes on: what it would save is not at stake
int rename(const char* from, const char* to) noexcept { return counted() ? -1 : int(syscall(SYS_rename, from, to)); }
int renameat2(int a, const char* from, int b, const char* to, unsigned flags) noexcept {
  return counted() ? -1 : int(syscall(SYS_renameat2, a, from, b, to, flags));
}
int mkdir(const char* path, mode_t mode) noexcept { return counted() ? -1 : int(syscall(SYS_mkdir, path, mode)); }
int unlink(const char* path) noexcept {
  if (what == FileCalls::kill) counted();  // a full disk lets files be removed
  return int(syscall(SYS_unlink, path));
}
int unlinkat(int directory, const char* path, int flags) noexcept {
  if (what == FileCalls::kill) counted();
  return int(syscall(SYS_unlinkat, directory, path, flags));
}
int open(const char* path, int flags, ...) {
  mode_t mode = 0;
  if (flags & (O_CREAT | O_TMPFILE)) {
    va_list list;
    va_start(list, flags);
    mode = va_arg(list, mode_t);
    va_end(list);
    if (counted()) return -1;
  }
  return int(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

}  // extern "C"

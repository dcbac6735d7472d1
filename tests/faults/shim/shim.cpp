// Loaded in front of the C library. Fails one call of a kind, or notes what reaches the disk:
//
//   STRETTO_FAULT=fsync:3 LD_PRELOAD=libstretto_faults.so stretto train ...      the third fsync after main() began
//   STRETTO_FAULT=none:0 STRETTO_FAULT_COUNTS=counts LD_PRELOAD=...              "fsync 12" and so on, at the end
//   STRETTO_TRACE=trace STRETTO_TRACE_ROOT=/tmp/x LD_PRELOAD=...               every change below that folder (trace.h)
//
// Only the first program that it is loaded into is concerned, not those that it starts.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>

#include "trace.h"

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

namespace {

enum Kind { alloc, write_, fsync_, rename_, mmap_, thread, fork_, kinds };
constexpr const char* names[kinds] = {"alloc", "write", "fsync", "rename", "mmap", "thread", "fork"};
constexpr int errors[kinds] = {ENOMEM, ENOSPC, EIO, EIO, ENOMEM, EAGAIN, EAGAIN};

std::atomic<bool> counting{false};
std::atomic<long> counts[kinds];
int fails = kinds;
long fails_at = 0;
char counts_file[4096], root[4096];
int trace_fd = -1;
pthread_mutex_t tracing = PTHREAD_MUTEX_INITIALIZER;
thread_local bool inside = false;  // of ourselves

bool fault(Kind kind) {
  if (!counting.load(std::memory_order_relaxed) || inside) return false;
  const long n = ++counts[kind];
  if (kind != fails || n != fails_at) return false;
  errno = errors[kind];
  return true;
}

template <class F>
F real(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

// --- what reaches the disk ---

using stretto::test::TraceHead;

bool below_root(const char* path) { return strncmp(path, root, strlen(root)) == 0; }
bool path_of(int fd, char (&path)[4096]) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
  if (n < 0) return false;
  path[n] = 0;
  return below_root(path);
}
bool absolute(int directory, const char* name, char (&path)[4096]) {
  if (name[0] == '/') {
    snprintf(path, sizeof path, "%s", name);
    return below_root(path);
  }
  char base[4096];
  if (directory == AT_FDCWD)
    syscall(SYS_getcwd, base, sizeof base);
  else
    path_of(directory, base);
  const bool here = name[0] == '.' && (name[1] == '/' || name[1] == 0);
  const int n = snprintf(path, sizeof path, "%s/%s", base, here ? name + (name[1] ? 2 : 1) : name);
  return n < int(sizeof path) && below_root(path);
}
void note(char op, const char* one, const char* other, long offset, const void* data, size_t bytes) {
  const TraceHead head{
      .op = op, .one = unsigned(strlen(one)), .other = unsigned(strlen(other)), .offset = offset, .bytes = long(bytes)};
  pthread_mutex_lock(&tracing);
  const iovec parts[] = {{const_cast<TraceHead*>(&head), sizeof head},
                         {const_cast<char*>(one), head.one},
                         {const_cast<char*>(other), head.other},
                         {const_cast<void*>(data), bytes}};
  syscall(SYS_writev, trace_fd, parts, 4);
  pthread_mutex_unlock(&tracing);
}

void write_counts() {
  if (counts_file[0] == 0) return;
  char text[512];
  int n = 0;
  for (int k = 0; k < kinds; ++k) n += snprintf(text + n, sizeof text - n, "%s %ld\n", names[k], counts[k].load());
  const int fd = int(syscall(SYS_openat, AT_FDCWD, counts_file, O_WRONLY | O_CREAT | O_TRUNC, 0666));
  syscall(SYS_write, fd, text, n);
  syscall(SYS_close, fd);
}

int (*own_main)(int, char**, char**);
int counted_main(int argc, char** argv, char** environment) {
  counting = fails != kinds || counts_file[0] != 0;
  for (int i = 1; i < argc; ++i)  // what holds a rank's place is none of the programs that are meant
    if (strcmp(argv[i], "--as-rank") == 0) counting = false;
  return own_main(argc, argv, environment);
}

void copy_variable(const char* name, char (&to)[4096]) {
  if (const char* value = getenv(name)) snprintf(to, sizeof to, "%s", value);
  unsetenv(name);
}

__attribute__((constructor)) void begin() {
  char what[4096] = "", trace[4096] = "";
  copy_variable("STRETTO_FAULT", what);
  copy_variable("STRETTO_FAULT_COUNTS", counts_file);
  copy_variable("STRETTO_TRACE_ROOT", root);
  copy_variable("STRETTO_TRACE", trace);
  unsetenv("LD_PRELOAD");
  for (int k = 0; k < kinds; ++k)
    if (const size_t n = strlen(names[k]); strncmp(what, names[k], n) == 0 && what[n] == ':')
      fails = k, fails_at = atol(what + n + 1);
  if (trace[0] != 0)
    trace_fd = int(syscall(SYS_openat, AT_FDCWD, trace, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666));
}

bool traces() { return trace_fd >= 0; }
void note_written(int fd, long offset, const void* data, ssize_t bytes) {
  char path[4096];
  if (traces() && bytes > 0 && path_of(fd, path)) note('w', path, "", offset, data, size_t(bytes));
}
bool is_appended(int fd) { return (syscall(SYS_fcntl, fd, F_GETFL) & O_APPEND) != 0; }
long place_of(int fd) { return is_appended(fd) ? -1 : long(syscall(SYS_lseek, fd, 0, SEEK_CUR)); }

int opened(int directory, const char* name, int flags, mode_t mode) {
  char path[4096];
  const bool noted = traces() && (flags & (O_CREAT | O_TRUNC)) != 0 && absolute(directory, name, path);
  const bool is_new = noted && syscall(SYS_faccessat, AT_FDCWD, path, F_OK) != 0;
  const int fd = int(syscall(SYS_openat, directory, name, flags, mode));
  if (noted && fd >= 0 && (is_new || (flags & O_TRUNC))) note(is_new ? 'c' : 't', path, "", 0, nullptr, 0);
  return fd;
}

}  // namespace

extern "C" {

int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(), void (*fini)(),
                      void (*rtld_fini)(), void* stack_end) {
  own_main = main;
  return real<decltype(&__libc_start_main)>("__libc_start_main")(counted_main, argc, argv, init, fini, rtld_fini,
                                                                 stack_end);
}
void _exit(int code) {
  write_counts();
  syscall(SYS_exit_group, code);
  __builtin_unreachable();
}
__attribute__((destructor)) void end() { write_counts(); }

void* malloc(size_t n) { return fault(alloc) ? nullptr : __libc_malloc(n); }
void* calloc(size_t n, size_t m) { return fault(alloc) ? nullptr : __libc_calloc(n, m); }
void* realloc(void* p, size_t n) { return fault(alloc) ? nullptr : __libc_realloc(p, n); }
void* memalign(size_t a, size_t n) { return fault(alloc) ? nullptr : __libc_memalign(a, n); }
void* aligned_alloc(size_t a, size_t n) { return fault(alloc) ? nullptr : __libc_memalign(a, n); }
int posix_memalign(void** p, size_t a, size_t n) {
  if (fault(alloc)) return ENOMEM;
  *p = __libc_memalign(a, n);
  return *p ? 0 : ENOMEM;
}

ssize_t write(int fd, const void* data, size_t n) {
  if (fault(write_)) return -1;
  const long place = traces() ? place_of(fd) : 0;
  const ssize_t done = syscall(SYS_write, fd, data, n);
  note_written(fd, place, data, done);
  return done;
}
ssize_t pwrite(int fd, const void* data, size_t n, off_t offset) {
  if (fault(write_)) return -1;
  const ssize_t done = syscall(SYS_pwrite64, fd, data, n, offset);
  note_written(fd, offset, data, done);
  return done;
}
ssize_t pwrite64(int fd, const void* data, size_t n, off_t offset) { return pwrite(fd, data, n, offset); }
ssize_t writev(int fd, const iovec* parts, int count) {
  if (fault(write_)) return -1;
  for (int i = 0; traces() && i < count; ++i) note_written(fd, -1, parts[i].iov_base, ssize_t(parts[i].iov_len));
  return syscall(SYS_writev, fd, parts, count);
}
int ftruncate(int fd, off_t length) noexcept {
  char path[4096];
  if (traces() && path_of(fd, path)) note('l', path, "", length, nullptr, 0);
  return int(syscall(SYS_ftruncate, fd, length));
}
int fsync(int fd) {
  if (fault(fsync_)) return -1;
  char path[4096];
  if (traces() && path_of(fd, path)) note('s', path, "", 0, nullptr, 0);
  return 0;  // the machine goes on: what it would save is not at stake
}
int fdatasync(int fd) { return fsync(fd); }

int renameat2(int a, const char* from, int b, const char* to, unsigned flags) noexcept {
  if (fault(rename_)) return -1;
  char one[4096], other[4096];
  const bool noted = traces() && absolute(a, from, one) && absolute(b, to, other);
  const int done = int(syscall(SYS_renameat2, a, from, b, to, flags));
  if (noted && done == 0) note(flags ? 'x' : 'r', one, other, 0, nullptr, 0);
  return done;
}
int rename(const char* from, const char* to) noexcept { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }

int mkdirat(int directory, const char* name, mode_t mode) noexcept {
  char path[4096];
  const int done = int(syscall(SYS_mkdirat, directory, name, mode));
  if (traces() && done == 0 && absolute(directory, name, path)) note('m', path, "", 0, nullptr, 0);
  return done;
}
int mkdir(const char* path, mode_t mode) noexcept { return mkdirat(AT_FDCWD, path, mode); }
int unlinkat(int directory, const char* name, int flags) noexcept {
  char path[4096];
  const bool noted = traces() && absolute(directory, name, path);
  const int done = int(syscall(SYS_unlinkat, directory, name, flags));
  if (noted && done == 0) note('u', path, "", 0, nullptr, 0);
  return done;
}
int unlink(const char* path) noexcept { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char* path) noexcept { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char* path) noexcept {
  return unlinkat(AT_FDCWD, path, 0) == 0 || errno != EISDIR ? 0 : unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

int open(const char* path, int flags, ...) {
  mode_t mode = 0;
  if (flags & (O_CREAT | O_TMPFILE)) {
    va_list list;
    va_start(list, flags);
    mode = va_arg(list, mode_t);
    va_end(list);
  }
  return opened(AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  mode_t mode = 0;
  if (flags & (O_CREAT | O_TMPFILE)) {
    va_list list;
    va_start(list, flags);
    mode = va_arg(list, mode_t);
    va_end(list);
  }
  return opened(AT_FDCWD, path, flags, mode);
}

void* mmap(void* at, size_t n, int protection, int flags, int fd, off_t offset) noexcept {
  if (fault(mmap_)) return MAP_FAILED;
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, n, protection, flags, fd, offset));
}
void* mmap64(void* at, size_t n, int protection, int flags, int fd, off_t offset) noexcept {
  return mmap(at, n, protection, flags, fd, offset);
}
int pthread_create(pthread_t* t, const pthread_attr_t* a, void* (*f)(void*), void* x) noexcept {
  if (fault(thread)) return EAGAIN;
  inside = true;
  const int done = real<decltype(&pthread_create)>("pthread_create")(t, a, f, x);
  inside = false;
  return done;
}
pid_t fork() noexcept {
  if (fault(fork_)) return -1;
  return real<decltype(&fork)>("fork")();
}
int posix_spawnp(pid_t* p, const char* file, const posix_spawn_file_actions_t* actions, const posix_spawnattr_t* how,
                 char* const words[], char* const environment[]) {
  if (fault(fork_)) return errors[fork_];
  return real<decltype(&posix_spawnp)>("posix_spawnp")(p, file, actions, how, words, environment);
}

}  // extern "C"

#include "resource_limits.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string_view>

#include "stretto/base/error.h"
#include "stretto/base/text.h"
#include "stretto/formats/mapped_file.h"

extern "C" __attribute__((weak)) int blas_thread_shutdown_();  // OpenBLAS has it where it has threads of its own

namespace stretto::app {
namespace {

constexpr rlim_t least_stack = 512 << 10;

rlim_t limit_on(decltype(RLIMIT_AS) what) {
  rlimit limit{};
  return getrlimit(what, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

}  // namespace

void meet_limits(char** argv) {
  constexpr const char* threads_variable = "OPENBLAS_NUM_THREADS";
  std::signal(SIGXFSZ, SIG_IGN);
  report_cut_files();
  if (const rlim_t stack = limit_on(RLIMIT_STACK); stack < least_stack)
    throw Error("stack", "its limit is {}, and {} are needed", human_bytes(double(stack)),
                human_bytes(double(least_stack)))
        .hint("raise it: ulimit -s 8192");
  const char* const threads = std::getenv(threads_variable);
  if (limit_on(RLIMIT_AS) == RLIM_INFINITY || (threads && std::string_view(threads) == "1")) return;
  // The library reads it when it is loaded, which has been: so once more from the beginning.
  setenv(threads_variable, "1", 1);
  execv("/proc/self/exe", argv);
}

void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // no larger one is taken
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 16 << 20);
}

void end_idle_threads() {
  if (blas_thread_shutdown_) blas_thread_shutdown_();
}

}  // namespace stretto::app

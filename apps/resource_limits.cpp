#include "resource_limits.h"

#include <malloc.h>
#include <sys/resource.h>

#include <csignal>

#include "stretto/base/error.h"
#include "stretto/base/text.h"
#include "stretto/formats/mapped_file.h"

namespace stretto::app {
namespace {

constexpr rlim_t least_stack = 512 << 10;

rlim_t limit_on(decltype(RLIMIT_AS) what) {
  rlimit limit{};
  return getrlimit(what, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

}  // namespace

void meet_limits() {
  std::signal(SIGXFSZ, SIG_IGN);
  report_cut_files();
  if (const rlim_t stack = limit_on(RLIMIT_STACK); stack < least_stack)
    throw Error("stack", "its limit is {}, and {} are needed", human_bytes(double(stack)),
                human_bytes(double(least_stack)))
        .hint("raise it: ulimit -s 8192");
}

void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // no larger one is taken
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 16 << 20);
}

}  // namespace stretto::app

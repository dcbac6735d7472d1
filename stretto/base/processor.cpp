#include "stretto/base/processor.h"

#include "stretto/base/error.h"

namespace stretto {

Processor this_processor() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_cpu_init();
  return {.avx2 = __builtin_cpu_supports("avx2") != 0, .fma = __builtin_cpu_supports("fma") != 0};
#else
  return {.avx2 = true, .fma = true};  // kernels are compiled for this processor, whatever it is
#endif
}

void check_processor(const Processor& p) {
  if (p.avx2 && p.fma) return;
  throw Error("processor", "it lacks {}, which the kernels are compiled for", !p.avx2 ? "AVX2" : "FMA")
      .hint("use a processor of 2015 or later, or build with -DSTRETTO_AVX2=OFF")
      .as(Error::Kind::run);
}

}  // namespace stretto

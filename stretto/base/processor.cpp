#include "stretto/base/processor.h"

#include <algorithm>
#include <cstdlib>

#include "stretto/base/error.h"
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

namespace stretto {

Processor this_processor() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_cpu_init();
  Processor p{.avx2 = __builtin_cpu_supports("avx2") != 0, .fma = __builtin_cpu_supports("fma") != 0};
  p.avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned amx_bf16 = 1u << 22, amx_tile = 1u << 24;
  p.amx_bf16 = p.avx512 && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & amx_bf16) && (d & amx_tile);
  p.avx512_bf16 = p.avx512 && __builtin_cpu_supports("avx512bf16");
  return p;
#else
  return {.avx2 = true, .fma = true};  // kernels are compiled for this processor, whatever it is
#endif
}

namespace {

// What a processor loses that is limited to a form: all that stands before it.
struct Form {
  std::string_view name;
  void (*drop)(Processor&);
};
constexpr Form forms[] = {
    {"amx", [](Processor& p) { p.amx_bf16 = false; }},
    {"avx512_bf16", [](Processor& p) { p.avx512_bf16 = false; }},
    {"avx512", [](Processor& p) { p.avx512 = false; }},
    {"avx2", [](Processor&) {}},
};

}  // namespace

Processor limited(Processor p, std::string_view form) {
  const auto known = std::ranges::find(forms, form, &Form::name);
  if (known == std::end(forms))
    throw Error("STRETTO_KERNELS", "there are no kernels for '{}'", form)
        .hint("use amx, avx512_bf16, avx512 or avx2, or unset it");
  for (const Form* f = forms; f != known; ++f) f->drop(p);
  return p;
}

Processor usable_processor() {
  const char* const form = std::getenv("STRETTO_KERNELS");
  return form ? limited(this_processor(), form) : this_processor();
}

void check_processor(const Processor& p) {
  if (p.avx2 && p.fma) return;
  throw Error("processor", "it lacks {}, which the kernels are compiled for", !p.avx2 ? "AVX2" : "FMA")
      .hint("use a processor of 2015 or later, or build with -DSTRETTO_AVX2=OFF")
      .as(Error::Kind::run);
}

}  // namespace stretto

#include "stretto/kernels/cpu/products.h"

#include <cblas.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/base/processor.h"
#include "stretto/base/text.h"
#include "stretto/kernels/cpu/blas.h"

// OpenBLAS's own, in no header of its: a buffer as a product takes it. Weak: a library without them is only asked less.
extern "C" {
[[gnu::weak]] void* blas_memory_alloc(int);
[[gnu::weak]] void blas_memory_free(void*);
[[gnu::weak]] void gotoblas_dynamic_init();
[[gnu::weak]] void gotoblas_dynamic_quit();
}

namespace stretto {
namespace {

// One by one, as the library does it: the system may refuse in one piece what it gives in several.
bool system_gives(int buffers) {
  std::vector<void*> given;
  for (int i = 0; i < buffers; ++i) {
    void* const at =
        ::mmap(nullptr, product_reserved + (1 << 16), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) break;
    given.push_back(at);
  }
  for (void* at : given) ::munmap(at, product_reserved + (1 << 16));
  return int(given.size()) == buffers;
}

// The library has and keeps them now, whatever else is allocated before the first product.
void take(int buffers) {
  if (!blas_memory_alloc || !blas_memory_free) return;
  std::vector<void*> taken;
  for (int i = 0; i < buffers; ++i) taken.push_back(blas_memory_alloc(0));
  for (void* buffer : taken) blas_memory_free(buffer);
}

// Forms of the library's kernels, best first, and which of them a processor runs. Those it may have chosen itself that
// are as good have a null.
struct ProductForm {
  std::string_view name;
  bool (*runs)(const Processor&);
};
constexpr ProductForm product_forms[] = {
    {"SapphireRapids", nullptr},
    {"Cooperlake", nullptr},
    {"SkylakeX", [](const Processor& p) { return p.avx512; }},
    {"Zen", nullptr},
    {"Haswell", [](const Processor& p) { return p.avx2 && p.fma; }},
};

}  // namespace

std::string choose_product_form() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const std::string own = openblas_get_corename();
  if (std::getenv("OPENBLAS_CORETYPE") || !gotoblas_dynamic_init || !gotoblas_dynamic_quit) return own;
  if (std::ranges::find(product_forms, own, &ProductForm::name) != std::end(product_forms)) return own;
  const Processor here = usable_processor();
  for (const ProductForm& f : product_forms) {
    if (!f.runs || !f.runs(here)) continue;
    ::setenv("OPENBLAS_CORETYPE", f.name.data(), 1);  // the library asks for it when it begins
    gotoblas_dynamic_quit();
    gotoblas_dynamic_init();
    ::unsetenv("OPENBLAS_CORETYPE");
    break;
  }
  return openblas_get_corename();
}

bool product_rows_alike() {
  choose_product_form();
  constexpr i64 rows = 64, parts = 3, n = 128, k = 256;
  std::vector<float> a(rows * parts * k), b(k * n), whole(rows * parts * n), cut(rows * parts * n);
  u64 x = 1;
  const auto next = [&] {
    return float((x = x * 6364136223846793005u + 1442695040888963407u) >> 40) / (1 << 24) - 0.5f;
  };
  std::generate(a.begin(), a.end(), next);
  std::generate(b.begin(), b.end(), next);
  gemm(false, false, rows * parts, n, k, 1.f, a.data(), k, b.data(), n, 0.f, whole.data(), n);
  for (i64 p = 0; p < parts; ++p)
    gemm(false, false, rows, n, k, 1.f, a.data() + p * rows * k, k, b.data(), n, 0.f, cut.data() + p * rows * n, n);
  return whole == cut;
}

void reserve_products(int threads) {
  static std::mutex mutex;
  static int reserved = 0;
  const std::lock_guard lock(mutex);
  if (threads <= reserved) return;
  choose_product_form();
  if (threads > most_product_threads)
    throw Error("memory", "{} ranks are threads of one process, and OpenBLAS can serve {}", threads,
                most_product_threads)
        .hint("start several processes, with 'stretto launch'");
  if (!system_gives(threads - reserved))
    throw Error("memory", "the system refuses the {} of address space that products of {} thread{} need: {} each",
                human_bytes(double(product_reserved) * threads), threads, threads == 1 ? "" : "s",
                human_bytes(double(product_reserved)))
        .hint("raise the limit (ulimit -v unlimited), or use fewer ranks per process");
  openblas_set_num_threads(1);  // one rank, one core
  take(threads);
  reserved = threads;
}

}  // namespace stretto

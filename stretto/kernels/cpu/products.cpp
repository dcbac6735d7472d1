#include "stretto/kernels/cpu/products.h"

#include <cblas.h>
#include <sys/mman.h>

#include <mutex>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/base/text.h"

// OpenBLAS's own, in no header of its: a buffer as a product takes it. Weak: a library without them is only asked less.
extern "C" {
[[gnu::weak]] void* blas_memory_alloc(int);
[[gnu::weak]] void blas_memory_free(void*);
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

}  // namespace

void reserve_products(int threads) {
  static std::mutex mutex;
  static int reserved = 0;
  const std::lock_guard lock(mutex);
  if (threads <= reserved) return;
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

// In the second and later steps nothing is allocated and no page is touched for the first time.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "support/small_models.h"

namespace {
std::atomic<long> allocations{0};
std::atomic<bool> counting{false};
}  // namespace

void* operator new(std::size_t n) {
  if (counting) ++allocations;
  if (void* p = std::malloc(n ? n : 1)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace stretto {
namespace {

long faults() {
  rusage u;
  getrusage(RUSAGE_SELF, &u);
  return u.ru_minflt + u.ru_majflt;
}

TEST(Steady, WorkerNeitherAllocatesNorFaults) {
  for (const char* family : {"gpt2", "llama", "mlp"}) {
    ModelConfig config = tiny(family);
    config.dropout = 0.1;
    const Compiled c = compile(make_model(config, 8), adamw(), {.microbatches = 4, .clip = 1});
    Worker w(c.program, 0, {.seed = 1});
    w.run(1);
    // The system itself may take idle pages away and fault them in again: the quietest of five rounds counts.
    long fewest = 1000000;
    for (int round = 0; round < 5; ++round) {
      const long before = faults();
      allocations = 0;
      counting = true;
      for (int i = 2; i < 4; ++i) w.run(i);
      counting = false;
      fewest = std::min(fewest, faults() - before);
      EXPECT_EQ(allocations.load(), 0) << family;
    }
    EXPECT_EQ(fewest, 0) << family;
  }
}

}  // namespace
}  // namespace stretto

// In the second and later steps nothing is allocated and no page is touched for the first time.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>

#include "support/counted_new.h"
#include "support/small_models.h"

namespace stretto {
namespace {

long faults() {
  rusage u;
  getrusage(RUSAGE_SELF, &u);
  return u.ru_minflt + u.ru_majflt;
}

// The system itself may take idle pages away and fault them in again: the quietest of five rounds counts. Sanitizers
// touch memory of their own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool counts_faults = false;
#else
constexpr bool counts_faults = true;
#endif
template <class Run>
void expect_steady(const char* what, Run run) {
  run(1);
  long fewest = 1000000;
  for (int round = 0; round < 5; ++round) {
    const long before = faults(), allocated = allocations;
    for (int i = 2; i < 4; ++i) run(i);
    fewest = std::min(fewest, faults() - before);
    EXPECT_EQ(allocations - allocated, 0) << what;
  }
  EXPECT_TRUE(fewest == 0 || !counts_faults) << what << ": " << fewest;
}

Compiled compiled(const char* family, const Parallel& parallel) {
  ModelConfig config = tiny(family);
  config.dropout = 0.1;
  return compile(make_model(config, 8), adamw(), {.microbatches = 4, .clip = 1}, parallel);
}

TEST(Steady, WorkerNeitherAllocatesNorFaults) {
  for (const char* family : {"gpt2", "llama", "mlp"}) {
    Worker w(compiled(family, {}).program, ActorId(0), 0, {.seed = 1});
    expect_steady(family, [&](i64 step) { w.run(step); });
  }
}

TEST(Steady, ActorsNeitherAllocateNorFault) {
  for (const char* schedule : {"1f1b", "zb-v", "dualpipe-v"}) {
    Engine e(compiled("gpt2", {.mesh = {{"pipe", 2}}, .schedule = schedule}).program, {.seed = 1});
    expect_steady(schedule, [&](i64 step) { e.run(step); });
  }
}

TEST(Steady, RanksNeitherAllocateNorFault) {
  for (const int zero : {0, 1, 3}) {
    const Parallel p{.mesh = {{"pipe", 2}}, .names = {.data = 2, .zero = zero}};
    Engine e(compiled("gpt2", p).program, {.seed = 1});
    expect_steady("data=2", [&](i64 step) { e.run(step); });
  }
}

}  // namespace
}  // namespace stretto

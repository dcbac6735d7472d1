// Threads that share the kernels of a rank change no bits: under every schedule and layout, in f32 and bf16, however
// many there are and however little there is to share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/threads.h"
#include "stretto/schedule/builders.h"
#include "support/message.h"
#include "support/small_models.h"

namespace stretto {
namespace {

constexpr int thread_counts[] = {2, 3, 5, 8};

struct ThreadsOutcome {
  u64 parameters = 0;
  std::vector<double> losses;
  double evaluation = 0;
  bool operator==(const ThreadsOutcome&) const = default;
};

class Threaded : public testing::TestWithParam<std::tuple<const char*, DType>> {
 protected:
  static Model model() {
    const std::string family = std::get<0>(GetParam());
    ModelConfig c = tiny(family);
    if (family == "gpt2") c.dropout = 0.1;
    if (family == "llama") c.kv_heads = 2, c.qk_norm = true, c.pad_vocab = 2;
    if (family == "mixtral") c.kv_heads = 2, c.ff = 24, c.experts = 4, c.balance = 0.05;
    return make_model(c, 24, 8);
  }
  static ThreadsOutcome trained(Parallel parallel, int threads) {
    parallel.threads = threads;
    const Training training{.microbatches = 4, .seed = 3, .dtype = std::get<1>(GetParam()), .clip = 0.5};
    Trainer trainer(compile(model(), adamw({.lr = 1e-2}), training, parallel), {.share_all = true});
    const Batch batch = random_batch(trainer.compiled(), 50);
    ThreadsOutcome o;
    for (int i = 0; i < 3; ++i) o.losses.push_back(trainer.step(batch).loss);
    o.parameters = trainer.parameters_hash();
    o.evaluation = trainer.evaluate(batch).loss;
    return o;
  }
};

TEST_P(Threaded, EveryNumberHasTheBitsOfOne) {
  const ThreadsOutcome one = trained({}, 1);
  EXPECT_LT(one.losses.back(), one.losses.front());
  for (const int threads : thread_counts) EXPECT_EQ(trained({}, threads), one) << threads;
}

TEST_P(Threaded, EveryScheduleHasTheBitsOfOne) {
  const ThreadsOutcome one = trained({}, 1);
  int compared = 0;
  for (const BuilderEntry& b : schedule_builders()) {
    if (!b.ascending || b.name.starts_with("seq-")) continue;
    try {
      build_schedule(b.name, {.actors = 2, .microbatches = 4, .chunks = b.default_chunks()});
    } catch (const Error&) {
      continue;  // not a size of this schedule
    }
    const Parallel parallel{
        .mesh = {{"pipe", 2}}, .schedule = std::string(b.name), .chunks = b.default_chunks(), .stages = {}};
    EXPECT_EQ(trained(parallel, thread_counts[compared++ % std::size(thread_counts)]), one) << b.name;
  }
  EXPECT_GE(compared, 4);
}

TEST_P(Threaded, EveryLayoutHasTheBitsOfOne) {
  int n = 0;
  for (const ParallelNames& names : std::vector<ParallelNames>{
           {.data = 2}, {.data = 2, .zero = 3}, {.tensor = 2}, {.tensor = 2, .sequence = true}, {.context = 2}}) {
    const Parallel parallel{.names = names};
    EXPECT_EQ(trained(parallel, thread_counts[n++ % std::size(thread_counts)]), trained(parallel, 1)) << n;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Threaded,
                         testing::Combine(testing::Values("gpt2", "llama", "mixtral"), testing::Values(f32, bf16)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) + "_" +
                                  std::string(name_of(std::get<1>(info.param)));
                         });

// Every thread has scratch of its own, and memory is planned for that.
TEST(Threads, ScratchIsPlannedForEach) {
  const auto scratch = [](int threads) {
    const Compiled c = compile(make_model(tiny("gpt2"), 8), adamw(), {}, {.threads = threads});
    return c.program->actors[ActorId(0)].bytes[Arena::scratch];
  };
  EXPECT_GT(scratch(1), 0u);
  EXPECT_EQ(scratch(3), 3 * scratch(1));
}

// A fault that only a helper's part of a kernel meets has the words of one that the rank's own thread meets.
TEST(Threads, FaultsComeOutOfEveryPart) {
  for (const int threads : {1, 2, 8}) {
    const Compiled c = compile(make_model(tiny("gpt2"), 8), adamw(), {}, {.threads = threads});
    Trainer trainer(c, {.share_all = true});
    Batch batch = random_batch(trainer.compiled(), 50);
    Array& ids = batch.at("ids");
    std::vector<std::int32_t> wrong(ids.elements(), 1);
    wrong.back() = 5000;
    ids = Array::of<std::int32_t>(wrong, ids.sizes);
    EXPECT_THAT(refusal_of([&] { trainer.step(batch); }), testing::HasSubstr("5000")) << threads;
  }
}

}  // namespace
}  // namespace stretto

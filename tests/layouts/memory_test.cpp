// What a rank holds of parameters, gradients and optimizer state is what theory says, to the byte.
#include "layouts/compare.h"
#include "stretto/program/account.h"
#include "support/message.h"

namespace stretto {
namespace {

u64 aligned(u64 bytes) { return (bytes + 63) / 64 * 64; }

struct Expected {
  u64 params = 0, gradients = 0, state = 0;
};

// Adam, all parameters in f32, cut over `data` ranks beside what `tensor` ranks take of them.
Expected expected(const Compiled& c, const ParallelNames& names) {
  Expected e;
  for (const CompiledParam& p : c.params) {
    u64 n = 1, over = 1;
    for (const Dim& d : p.dims) {
      n *= u64(d.size);
      if (d.name == "heads" || d.name == "ff" || d.name == "vocab") over = u64(names.tensor);
    }
    const u64 whole = n / over, part = (whole + u64(names.data) - 1) / u64(names.data);
    e.params += aligned(4 * (names.zero > 2 ? part : whole));
    e.gradients += aligned(4 * (names.zero > 1 ? part : whole)) * p.accumulators.size();
    e.state += 2 * aligned(4 * (names.zero > 0 ? part : whole));
  }
  return e;
}

TEST(LayoutMemory, IsWhatTheorySays) {
  ModelConfig config = small("gpt2", 2);
  config.tied = false;
  for (int data : {2, 4})
    for (int tensor : {1, 2})
      for (int zero : {0, 1, 2, 3}) {
        const ParallelNames names{.data = data, .tensor = tensor, .zero = zero};
        const Compiled c = compile(make_model(config, 8), adamw(), {}, {.names = names});
        const Expected e = expected(c, names);
        const auto& bytes = c.program->actors[ActorId(0)].bytes;
        EXPECT_EQ(bytes[Arena::params], e.params) << c.parallel.mesh.str() << " zero " << zero;
        EXPECT_EQ(bytes[Arena::gradients], e.gradients) << c.parallel.mesh.str() << " zero " << zero;
        EXPECT_EQ(bytes[Arena::state], e.state) << c.parallel.mesh.str() << " zero " << zero;
      }
}

// Beside what it works with, a rank holds the gathered parameters of two pieces at most, or for a step those of all.
TEST(LayoutMemory, ParametersAreGatheredAPieceAhead) {
  ModelConfig config = small("gpt2", 6);
  config.width = 64, config.ff = 256, config.context = 8;
  const auto gathered = [&](Reshard reshard) {
    const Compiled c = compile(make_model(config, 8), sgd(), {.microbatches = 2},
                               {.names = {.data = 2, .zero = 3}, .reshard = reshard});
    return account(*c.program)[0].bytes(Holding::Kind::storage);
  };
  const u64 half_layer = 4 * (2 * 64 * 256 + 64 + 256 + 2 * 64), whole = 6 * (half_layer + 4 * 4 * 64 * 64);
  // Two of forward or backward; after W also the gradients of two.
  EXPECT_LE(gathered(Reshard::microbatch), 4 * half_layer + 4096);
  EXPECT_GE(gathered(Reshard::microbatch), half_layer);
  EXPECT_GE(gathered(Reshard::step), whole);
}

TEST(LayoutRefusals, NothingToKeepGathered) {
  EXPECT_THROW(
      compile(make_model(small("gpt2"), 8), adamw(), {}, {.names = {.data = 2, .zero = 2}, .reshard = Reshard::step}),
      Error);
}

TEST(LayoutRefusals, RowsThatRanksCannotShare) {
  const auto message = [](i64 rows, int microbatches, const Parallel& p) -> std::string {
    return refusal_of([&] { compile(make_model(small("gpt2"), rows), adamw(), {.microbatches = microbatches}, p); });
  };
  EXPECT_EQ(message(12, 2, {.names = {.data = 4}}),
            "[batch] 12 rows per step in 2 microbatches are 6 rows at a time, which 4 ranks along data cannot share; "
            "hint: the nearest batch sizes are 8 and 16");
  EXPECT_EQ(message(2, 1, {.names = {.data = 2, .depth = 2}}),
            "[batch] 2 rows per step in 1 microbatches are 2 rows at a time, which 4 ranks along data, depth cannot "
            "share; hint: the nearest batch size is 4");
  EXPECT_EQ(message(8, 1, {.mesh = {{"data", 2}}, .names = {.data = 2}}),
            "[mesh] axis 'data' is given twice: in the mesh and by its short name; hint: leave one out");
}

}  // namespace
}  // namespace stretto

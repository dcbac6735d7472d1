#include <gtest/gtest.h>

#include "support/small_models.h"

namespace stretto {
namespace {

struct Live {
  u64 begin, end;
  i64 first, last;
};

// Lifetimes of everything in the activation arena, recounted from the instruction list alone.
std::vector<Live> recount(const Program& p) {
  std::vector<Live> all;
  std::map<std::pair<Binding, MicrobatchId>, std::size_t> values;
  i64 clock = 0;
  const ActorProgram& a = p.actors[ActorId(0)];
  for (const Instruction& i : a.code) {
    const Run& r = std::get<Run>(i);  // one actor: no messages
    const Calls& calls = *p.calls[r.task];
    const Task& task = p.step->tasks[r.task];
    for (BufferId b : calls.buffers.ids()) {
      const BodyBuffer& buffer = calls.buffers[b];
      const Slot& slot = a.slots[SlotId(r.args.value + b.value)];
      if (!buffer.touched || slot.arena != Arena::activations) continue;
      const Live live{slot.offset, slot.offset + buffer.bytes, clock + buffer.touched->first.value,
                      clock + buffer.touched->last.value};
      if (buffer.temporary()) {
        all.push_back(live);
        continue;
      }
      const Binding& where = buffer.argument() ? task.inputs[*buffer.argument()] : task.outputs[*buffer.result()];
      const auto [it, fresh] = values.try_emplace({where, r.microbatch}, all.size());
      if (fresh)
        all.push_back(live);
      else {
        EXPECT_EQ(all[it->second].begin, live.begin) << "a value moved";
        all[it->second].last = std::max(all[it->second].last, live.last);
      }
    }
    clock += std::max<i64>(1, i64(calls.calls.size()));
  }
  return all;
}

class Memory : public testing::TestWithParam<std::string> {};

TEST_P(Memory, NothingAliveOverlapsAndThePlanIsNearTheBound) {
  for (int microbatches : {1, 3}) {
    const Compiled c = compile(make_model(tiny(GetParam(), 3), 6), adamw(), {.microbatches = microbatches, .clip = 1});
    const ActorProgram& a = c.program->actors[ActorId(0)];
    const u64 planned = a.bytes[Arena::activations];
    EXPECT_LE(double(planned), 1.05 * double(a.activation_bound));
    const std::vector<Live> all = recount(*c.program);
    std::map<i64, i64> change;
    for (std::size_t i = 0; i < all.size(); ++i) {
      ASSERT_LE(all[i].end, planned);
      change[all[i].first] += i64(all[i].end - all[i].begin), change[all[i].last + 1] -= i64(all[i].end - all[i].begin);
      for (std::size_t j = 0; j < i; ++j)
        ASSERT_FALSE(all[i].first <= all[j].last && all[j].first <= all[i].last && all[i].begin < all[j].end &&
                     all[j].begin < all[i].end)
            << i << " and " << j;
    }
    i64 live = 0, most = 0;
    for (const auto& [time, by] : change) most = std::max(most, live += by);
    EXPECT_LE(most, i64(a.activation_bound));  // the bound rounds every buffer up to 64 bytes
    EXPECT_GE(most, i64(0.8 * double(a.activation_bound)));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Memory, testing::Values("gpt2", "llama", "mlp"),
                         [](const auto& i) { return i.param; });

// Of few buffers, which are packed with all temporaries, and of many, whose temporaries lie in blocks.
TEST(Memory, SizesAloneAreThoseOfTheWholePlan) {
  for (int microbatches : {2, 64})
    for (int zero : {0, 3}) {
      const auto made = [&](Purpose purpose) {
        return compile(make_model(tiny("llama", 3), 128), adamw(), {.microbatches = microbatches, .clip = 1},
                       {.mesh = {{"pipe", 2}}, .names = {.data = 2, .tensor = 2, .zero = zero}, .purpose = purpose})
            .program->actors;
      };
      const IdVector<ActorId, ActorProgram> placed = made(Purpose::picture), sized = made(Purpose::sizes);
      for (ActorId a : placed.ids()) {
        EXPECT_EQ(sized[a].bytes, placed[a].bytes) << microbatches << " microbatches, zero = " << zero;
        EXPECT_EQ(sized[a].activation_bound, placed[a].activation_bound);
        EXPECT_FALSE(placed[a].slots.empty());
        EXPECT_TRUE(sized[a].slots.empty());
      }
    }
}

}  // namespace
}  // namespace stretto

// Programs for ranks that share no memory.
#include <gtest/gtest.h>

#include "support/small_models.h"

namespace stretto {
namespace {

Model stack() {
  return [](Trace& t) {
    const Dim batch = t.batch("batch", 24), in{"in", 6}, hidden{"hidden", 16}, out{"out", 3};
    const Tensor x = t.input("x", {batch, in}), y = t.input("y", {batch, out});
    const Dim mid = hidden.like("mid");
    Tensor h = boundary(contract(x, t.param("up", {in, hidden}, {.init = fan_in(in)}), in));
    const Tensor w = t.param("w", {hidden, mid}, {.init = fan_in(hidden)});
    for (int i = 0; i < 6; ++i) h = boundary(h + tanh(rename(contract(h, w, hidden), mid, hidden)));
    return mean_of(square(contract(h, t.param("down", {hidden, out}, {.init = fan_in(hidden)}), hidden) - y));
  };
}

Compiled compiled(bool remote, const char* schedule) {
  return compile(stack(), adamw({.lr = 1e-2}), {.microbatches = 6},
                 {.mesh = {{"pipe", 3}}, .schedule = schedule, .remote = remote});
}

TEST(RemoteProgram, NothingIsMadeInAnotherRanksMemory) {
  const Compiled near = compiled(false, "1f1b"), far = compiled(true, "1f1b");
  int direct = 0;
  for (const Transfer& t : near.program->transfers) direct += t.direct;
  EXPECT_GT(direct, 0) << "else there is nothing to test";
  for (const Transfer& t : far.program->transfers) EXPECT_FALSE(t.direct);
  for (const ActorProgram& a : far.program->actors)
    for (const Slot& s : a.slots) EXPECT_FALSE(s.elsewhere);
}

TEST(RemoteProgram, WhatIsSentStaysBehindItsSendAndWhatComesHasItsPlaceBefore) {
  for (const char* schedule : {"1f1b", "zb-v", "gpipe"}) {
    const Compiled c = compiled(true, schedule);
    const Program& p = *c.program;
    for (const ActorProgram& a : p.actors)
      for (InstructionId i : a.code.ids()) {
        const Instruction x = a.code[i];
        if (const Send* s = std::get_if<Send>(&x)) {
          EXPECT_GT(p.transfers[s->transfer].released, i);
          EXPECT_LE(p.transfers[s->transfer].released, a.code.next_id());
        }
        if (const Receive* r = std::get_if<Receive>(&x)) {
          EXPECT_LE(p.transfers[r->transfer].posted, i);
        }
      }
  }
}

TEST(RemoteProgram, GivesTheSameBits) {
  for (const char* schedule : {"1f1b", "zb-v"}) {
    Trainer near(compiled(false, schedule)), far(compiled(true, schedule));
    const Batch batch = random_batch(near.compiled(), 4);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(near.step(batch).loss, far.step(batch).loss);
    EXPECT_EQ(near.parameters_hash(), far.parameters_hash());
  }
}

}  // namespace
}  // namespace stretto

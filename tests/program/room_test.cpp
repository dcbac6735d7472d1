// Gradients that other actors send take the room of activations.
#include "stretto/program/memory/room.h"

#include <gtest/gtest.h>

#include "stretto/program/proofs/races.h"
#include "support/instruction_list.h"
#include "support/small_models.h"

namespace stretto {
namespace {

Compiled room_program(bool tied, std::string schedule = "1f1b") {
  ModelConfig c = tiny("gpt2", 6);
  c.vocab = 300, c.context = 64, c.tied = tied;
  return compile(make_model(c, 16), adamw(), {.microbatches = 8}, {.mesh = {{"pipe", 4}}, .schedule = schedule});
}

// All that an actor does before a message can be written to it.
bool done_before(const Program& p, ActorId actor, InstructionId posted, Phase phase) {
  const test::InstructionList code = test::list_of(p.actors[actor].code);
  for (InstructionId i : code.ids())
    if (const Run* r = task_of(code[i]); r && r->action && p.action(actor, *r->action).phase == phase && i >= posted)
      return false;
  return true;
}

TEST(Room, GradientsOfOthersLieAmongActivations) {
  const Compiled tied = room_program(true), untied = room_program(false);
  const ActorId first(0);
  int sent = 0;
  for (const Transfer& t : tied.program->transfers) {
    if (!std::holds_alternative<AccumulatorId>(t.what)) continue;
    EXPECT_EQ(t.extents[0].from.arena, Arena::gradients);
    EXPECT_EQ(t.extents[0].to.arena, Arena::activations);
    EXPECT_TRUE(done_before(*tied.program, tied.program->routes[t.route].target, t.posted, Phase::F));
    EXPECT_FALSE(done_before(*tied.program, tied.program->routes[t.route].target, t.posted, Phase::B));
    ++sent;
  }
  EXPECT_EQ(sent, 1);
  const auto& with = tied.program->actors[first].bytes;
  const auto& without = untied.program->actors[first].bytes;
  EXPECT_EQ(with[Arena::gradients], without[Arena::gradients]);
  EXPECT_LT(double(with[Arena::activations]), 1.03 * double(without[Arena::activations]));
}

TEST(Room, TwoPipesTellEachOther) {
  const Compiled c = room_program(false, "chimera");
  std::set<std::pair<ActorId, ActorId>> gradients, told;
  for (const Transfer& t : c.program->transfers) {
    const Route& r = c.program->routes[t.route];
    if (std::holds_alternative<AccumulatorId>(t.what)) gradients.insert({r.source, r.target});
    if (std::holds_alternative<SentWord>(t.what)) told.insert({r.target, r.source});
  }
  EXPECT_EQ(gradients.size(), 4u);
  EXPECT_EQ(told, gradients);
}

// The proof needs the message: gradients that do not wait for it would be written where activations still are.
TEST(Room, IsNotThereBeforeItIsTold) {
  Program p = *room_program(true).program;
  EXPECT_TRUE(races(p).empty());
  test::InstructionList code = test::list_of(p.actors[ActorId(3)].code);
  const auto told = std::find_if(code.begin(), code.end(), [&](const Instruction& i) {
    const Receive* r = std::get_if<Receive>(&i);
    return r && std::holds_alternative<SentWord>(p.transfers[r->transfer].what);
  });
  ASSERT_NE(told, code.end());
  ASSERT_TRUE(std::holds_alternative<Send>(told[1]));
  std::swap(told[0], told[1]);
  p.actors[ActorId(3)].code = Code(code.list());
  EXPECT_FALSE(races(p).empty());
}

// With so many runs that their temporaries lie in blocks (memory.cpp).
TEST(Room, GradientsOfOthersLieBesideBlocks) {
  ModelConfig c = tiny("gpt2", 2);
  c.tied = true;
  const Compiled many = compile(make_model(c, 256), sgd(), {.microbatches = 256}, {.mesh = {{"pipe", 2}}});
  EXPECT_TRUE(verify(*many.program).empty());
}

TEST(Room, NobodyIsToldWhereNothingIsSent) {
  const Compiled c = room_program(false);
  for (const Transfer& t : c.program->transfers) EXPECT_FALSE(std::holds_alternative<SentWord>(t.what));
}

}  // namespace
}  // namespace stretto

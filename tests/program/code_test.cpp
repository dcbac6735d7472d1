// Turns that are alike have one code, and nothing that is said of a program depends on that.
#include "stretto/program/code.h"

#include <gmock/gmock.h>

#include "stretto/program/memory/lifetimes.h"
#include "stretto/program/overlap/region.h"
#include "stretto/program/proofs/order.h"
#include "stretto/program/proofs/races.h"
#include "stretto/simulate/step_time.h"
#include "stretto/stretto.h"
#include "support/small_models.h"

namespace stretto {
namespace {
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<Instruction> two_turns() {
  return {Receive{TransferId(7)}, stretto::Run{.task = TaskId(2), .microbatch = MicrobatchId(5), .action = ActionId(9)},
          Start{{.task = TaskId(3), .microbatch = MicrobatchId(5)}, CollectiveId(4)},
          Await{CollectiveId(4), TaskId(3)}};
}

TEST(Code, NumbersStandForWhatATurnHas) {
  const auto [code, numbers] = numbered(two_turns());
  EXPECT_THAT(numbers.microbatches, ElementsAre(MicrobatchId(5)));
  EXPECT_THAT(numbers.actions, ElementsAre(ActionId(9)));
  EXPECT_THAT(numbers.transfers, ElementsAre(TransferId(7)));
  EXPECT_THAT(numbers.collectives, ElementsAre(CollectiveId(4)));
  Code all;
  const TurnCodeId kind = all.add(code);
  all.add(kind, numbers);
  all.add(kind, {{MicrobatchId(6)}, {ActionId(11)}, {TransferId(8)}, {CollectiveId(5)}});
  ASSERT_EQ(all.size(), 8u);
  EXPECT_EQ(std::get<Receive>(all[InstructionId(4)]).transfer, TransferId(8));
  const auto run = std::get<stretto::Run>(all[InstructionId(5)]);
  EXPECT_EQ(run.microbatch, MicrobatchId(6));
  EXPECT_EQ(run.action, ActionId(11));
  EXPECT_EQ(std::get<Start>(all[InstructionId(6)]).collective, CollectiveId(5));
  EXPECT_EQ(std::get<Await>(all[InstructionId(3)]).collective, CollectiveId(4));
}

TEST(Code, WhatIsPushedIsATurnThatNothingIsLike) {
  Code code(two_turns());
  EXPECT_EQ(code.turns().size(), 1u);
  EXPECT_EQ(std::get<Await>(code[InstructionId(3)]).collective, CollectiveId(4));
  code.close();
  code.push_back(Send{TransferId(1)});
  EXPECT_EQ(code.turns().size(), 2u);
  EXPECT_EQ(std::get<Send>(code[InstructionId(4)]).transfer, TransferId(1));
}

Program program_of(const Parallel& p, int microbatches) {
  return *compile(make_model(tiny("gpt2", 4), 4 * microbatches), adamw(), {.microbatches = microbatches, .clip = 1}, p)
              .program;
}

// The number of codes depends on the schedule, not on how long it is.
TEST(Code, ALongerScheduleHasNoMoreCodes) {
  const auto codes = [](int microbatches) {
    std::vector<std::size_t> all;
    for (const ActorProgram& a : program_of({.mesh = {{"pipe", 4}}}, microbatches).actors) {
      EXPECT_GT(a.code.turns().size(), 2u * microbatches);
      all.push_back(a.code.kinds().size());
    }
    return all;
  };
  EXPECT_EQ(codes(16), codes(64));
}

const std::vector<Parallel> layouts{{.mesh = {{"pipe", 2}}, .schedule = "1f1b"},
                                    {.mesh = {{"pipe", 2}}, .schedule = "zb-v", .remote = true},
                                    {.mesh = {{"pipe", 2}}, .names = {.data = 2, .zero = 2}, .schedule = "zb-h1"},
                                    {.mesh = {{"pipe", 2}}, .names = {.data = 2, .zero = 3}, .schedule = "dualpipe-v"},
                                    {.mesh = {{"pipe", 2}}, .names = {.data = 2, .tensor = 2}, .schedule = "chimera"}};

// The same instructions, of which nothing is known to repeat.
Program written_out(Program p) {
  for (ActorProgram& a : p.actors) a.code = Code(a.code.written_out());
  return p;
}

std::vector<std::string> texts(const std::vector<Fault>& faults) {
  std::vector<std::string> all;
  for (const Fault& f : faults) all.push_back(f.str());
  return all;
}

TEST(Turns, AndWhatIsWrittenOutAgree) {
  for (const Parallel& parallel : layouts) {
    Program turns = program_of(parallel, 8);
    Program flat = written_out(turns);
    EXPECT_EQ(turns.hash(), flat.hash());
    EXPECT_THAT(texts(verify(turns)), IsEmpty());
    EXPECT_THAT(texts(verify(flat)), IsEmpty());
    EXPECT_EQ(step_time(turns, {}).seconds, step_time(flat, {}).seconds);
    for (Program* p : {&turns, &flat}) {
      for (Transfer& t : p->transfers) t.posted = InstructionId(0);
      EXPECT_THAT(texts(settle_order(*p)), IsEmpty());
    }
    for (TransferId t : turns.transfers.ids()) EXPECT_EQ(turns.transfers[t].posted, flat.transfers[t].posted);
    for (ActorId a : turns.actors.ids()) {
      const Lifetimes x = lifetimes(turns, a), y = lifetimes(flat, a);
      ASSERT_EQ(x.buffers.size(), y.buffers.size());
      for (LiveId b : x.buffers.ids()) {
        const auto all = [](const LiveBuffer& l) {
          return std::tuple(l.bytes, l.first, l.last, l.made, l.read, l.run);
        };
        EXPECT_EQ(all(x.buffers[b]), all(y.buffers[b]));
      }
    }
  }
}

// Also on what is wrong: buffers that lie where others are.
TEST(Turns, AndWhatIsWrittenOutHaveTheSameRaces) {
  int found = 0;
  for (const Parallel& parallel : layouts) {
    const Program right = program_of(parallel, 4);
    for (std::size_t k = 0; k < 200; k += 20) {
      Program turns = right;
      for (ActorProgram& a : turns.actors) {
        std::size_t n = 0;
        for (Slot& s : a.slots)
          if (s.arena == Arena::activations && !s.elsewhere && s.offset > 0 && n++ % 200 == k) s.offset -= 64;
      }
      const std::vector<std::string> faults = texts(races(turns));
      EXPECT_EQ(faults, texts(races(written_out(turns))));
      found += !faults.empty();
    }
  }
  EXPECT_GT(found, 0);
}

// The emitter ends turns where a look at all instructions would.
TEST(Turns, EndWhereTheNextActionBegins) {
  for (Parallel parallel : layouts) {
    parallel.overlap = Overlap::none;  // which puts other things at the end of a turn
    const Program p = program_of(parallel, 8);
    Program again = p;
    for (ActorId a : p.actors.ids()) {
      const Code& code = p.actors[a].code;
      rewrite_turns(again, a, 0, code.turns().size(), code.written_out());
      const auto firsts = [](const Code& c) {
        std::vector<InstructionId> all;
        for (const Turn& t : c.turns()) all.push_back(t.first);
        return all;
      };
      EXPECT_EQ(firsts(again.actors[a].code), firsts(code));
    }
  }
}

}  // namespace
}  // namespace stretto

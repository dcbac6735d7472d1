// What may go on at the same time never touches the same memory, and whatever makes it so is missed when it is gone.
#include "stretto/program/proofs/races.h"

#include <gmock/gmock.h>

#include "program/by_hand.h"
#include "support/small_models.h"

namespace stretto {
namespace {
using testing::HasSubstr;

std::shared_ptr<const Program> program_for(const Parallel& p) {
  return compile(make_model(tiny("gpt2", 4), 8), adamw(), {.microbatches = 4, .clip = 1}, p).program;
}

IdVector<ActorId, Lanes> all_lanes(const Program& p) {
  IdVector<ActorId, Lanes> lanes;
  for (ActorId a : p.actors.ids()) lanes.push_back(lanes_of(p, a));
  return lanes;
}

std::string told(const std::vector<Fault>& faults) {
  std::string all;
  for (const Fault& f : faults) all += f.str() + "\n";
  return all;
}

TEST(Lanes, WhatIsStartedWaitsForTasksAndTasksForWhatTheyAwait) {
  const auto p = program_for({.names = {.data = 2}});
  const Lanes lanes = lanes_of(*p, ActorId(0));
  const test::InstructionList code = test::list_of(p->actors[ActorId(0)].code);
  std::map<CollectiveId, InstructionId> started;
  for (InstructionId i : code.ids()) {
    const std::vector<InstructionId>& waits = lanes.waits[i];
    if (const Start* s = std::get_if<Start>(&code[i])) {
      started[s->collective] = i;
      EXPECT_EQ(lanes.lane[i], DeviceLane::gradients);
      ASSERT_EQ(waits.size(), 1u);
      EXPECT_EQ(lanes.lane[waits[0]], DeviceLane::compute);
    } else {
      EXPECT_EQ(lanes.lane[i], DeviceLane::compute);
      const Await* w = std::get_if<Await>(&code[i]);
      EXPECT_EQ(waits, w ? std::vector{started.at(w->collective)} : std::vector<InstructionId>{});
    }
  }
  EXPECT_FALSE(started.empty());
}

TEST(Lanes, MessagesWhoseMemoryIsKeptHaveALaneOfTheirOwn) {
  const auto p = program_for({.mesh = {{"pipe", 2}}, .remote = true});
  const Lanes lanes = lanes_of(*p, ActorId(0));
  const test::InstructionList code = test::list_of(p->actors[ActorId(0)].code);
  int released = 0;
  for (InstructionId i : code.ids()) {
    if (const Send* s = std::get_if<Send>(&code[i])) {
      const bool word = std::holds_alternative<SentWord>(p->transfers[s->transfer].what);  // has no memory
      EXPECT_EQ(lanes.lane[i], word ? DeviceLane::compute : DeviceLane::messages);
    }
    if (lanes.lane[i] == DeviceLane::compute)
      for (InstructionId j : lanes.waits[i]) {
        ++released;
        EXPECT_GE(i, *p->transfers[std::get<Send>(code[j]).transfer].released);
      }
  }
  EXPECT_GT(released, 0);
}

// The compute lane waits, up to the next task, for something later in the same lane: that says the same.
bool implied(const Program& p, const Lanes& lanes, ActorId a, InstructionId i) {
  const InstructionId awaited = lanes.waits[i][0];
  for (InstructionId k(0); k < i || !std::holds_alternative<stretto::Run>(p.actors[a].code[k]);
       k = InstructionId(k.value + 1))
    for (InstructionId j : lanes.waits[k])
      if (lanes.lane[k] == DeviceLane::compute && lanes.lane[j] == lanes.lane[awaited] && j > awaited) return true;
  return false;
}

// Every wait that is left out is missed.
TEST(Races, EveryAwaitAndEveryEventThatSumsWaitForIsNeeded) {
  for (const Parallel& parallel : {Parallel{.names = {.data = 2}},
                                   {.names = {.data = 2, .zero = 2}},
                                   {.names = {.data = 2, .zero = 3}},
                                   {.mesh = {{"pipe", 2}}, .names = {.data = 2, .zero = 3}, .schedule = "zb-v"}}) {
    const auto p = program_for(parallel);
    const IdVector<ActorId, Lanes> right = all_lanes(*p);
    ASSERT_EQ(told(races(*p, right)), "");
    int awaits = 0, events = 0;
    for (ActorId a : p->actors.ids())
      for (InstructionId i : p->actors[a].code.ids()) {
        if (right[a].waits[i].empty()) continue;
        const Instruction code = p->actors[a].code[i];
        const bool await = std::holds_alternative<Await>(code);
        if (!await && p->task(*task_of(code)).part == Part::U) continue;  // its memory may have been free for long
        IdVector<ActorId, Lanes> lanes = right;
        lanes[a].waits[i].clear();
        if (await && implied(*p, right[a], a, i)) continue;
        EXPECT_THAT(told(races(*p, lanes)), HasSubstr("has to wait for")) << p->str(code);
        ++(await ? awaits : events);
      }
    EXPECT_GT(awaits, 0);
    EXPECT_GT(events, 0);
  }
}

TEST(Races, WhatIsSentMustNotBeUsedAgainBeforeItHasLeft) {
  const auto p = program_for({.mesh = {{"pipe", 2}}, .schedule = "gpipe", .remote = true});
  const IdVector<ActorId, Lanes> right = all_lanes(*p);
  ASSERT_EQ(told(races(*p, right)), "");
  int reused = 0, made = 0;
  for (ActorId a : p->actors.ids())
    for (InstructionId i : p->actors[a].code.ids()) {
      if (right[a].waits[i].empty()) continue;
      IdVector<ActorId, Lanes> lanes = right;
      lanes[a].waits[i].clear();
      const bool found = !races(*p, lanes).empty();
      if (lanes[a].lane[i] == DeviceLane::messages) {
        ++made;
        EXPECT_TRUE(found) << p->str(p->actors[a].code[i]);  // sent before it was made
      } else {
        reused += found;  // not all memory is used again at once
      }
    }
  EXPECT_GT(made, 8);
  EXPECT_GT(reused, 0);
}

// Programs in which two neighbouring instructions of an actor have changed places.
template <class Which, class Check>
void for_neighbours_swapped(Which which, Check check) {
  for (const bool remote : {false, true})
    for (const char* schedule : {"1f1b", "zb-h1", "chimera"}) {
      const auto right = program_for({.mesh = {{"pipe", 2}}, .schedule = schedule, .remote = remote});
      int swapped = 0;
      for (ActorId a : right->actors.ids())
        for (InstructionId i : right->actors[a].code.ids()) {
          const Code& code = right->actors[a].code;
          const InstructionId next(i.value + 1);
          if (!code.has(next) || !which(*right, code[i], code[next])) continue;
          Program p = *right;
          test::changed(p.actors[a], [&](test::InstructionList& all) { std::swap(all[i], all[next]); });
          SCOPED_TRACE(p.str(p.actors[a].code[i]));
          check(p, remote);
          ++swapped;
        }
      EXPECT_GT(swapped, 5) << schedule;
    }
}

TEST(Races, AMessageIsReadAfterItsReceiveOnly) {
  for_neighbours_swapped(
      [](const Program& p, const Instruction& first, const Instruction& second) {
        const Receive* r = std::get_if<Receive>(&first);
        return r && p.transfers[r->transfer].value() && std::holds_alternative<stretto::Run>(second);
      },
      [](const Program& p, bool) { EXPECT_THAT(told(races(p)), HasSubstr("the message is complete at instruction")); });
}

TEST(Races, AMessageIsToldAfterItIsMadeOnly) {
  for_neighbours_swapped(
      [](const Program& p, const Instruction& first, const Instruction& second) {
        const Send* s = std::get_if<Send>(&second);
        return s && p.transfers[s->transfer].value() && std::holds_alternative<stretto::Run>(first);
      },
      [](const Program& p, bool remote) {
        EXPECT_THAT(told(races(p)), HasSubstr(remote ? "lane messages) reads" : "sends the message before"));
      });
}

// A message may be written as soon as its sender can send it: what lies there must be over by what the sender knows.
TEST(Races, MemoryOfAMessageIsFreeByWhatItsSenderKnows) {
  for (const bool remote : {false, true}) {
    const auto right = program_for({.mesh = {{"pipe", 2}}, .schedule = "1f1b", .remote = remote});
    int early = 0, all = 0;
    for (TransferId t : right->transfers.ids()) {
      if (right->transfers[t].posted == InstructionId(0)) continue;
      Program p = *right;
      p.transfers[t].posted = InstructionId(0);
      ++all;
      early += !races(p).empty();
    }
    EXPECT_GT(early, all / 2);
    // Parameters that another actor updates are overwritten when all of their readers are done.
    const auto tied = compile(make_model(
                                  [] {
                                    ModelConfig c = tiny("gpt2", 4);
                                    c.tied = true;
                                    return c;
                                  }(),
                                  8),
                              adamw(), {.microbatches = 4}, {.mesh = {{"pipe", 2}}, .remote = remote})
                          .program;
    int params = 0;
    for (TransferId t : tied->transfers.ids()) {
      if (!std::holds_alternative<ParamId>(tied->transfers[t].what)) continue;
      Program p = *tied;
      p.transfers[t].posted = InstructionId(1);
      EXPECT_THAT(told(races(p)), HasSubstr("of params: ")) << remote;
      ++params;
    }
    EXPECT_GT(params, 0);
  }
}

TEST(Races, TwoBuffersAtOnePlaceAreFound) {
  const auto right = program_for({.names = {.data = 2, .zero = 3}});
  Program p = *right;
  ActorProgram& a = p.actors[ActorId(0)];
  // What is gathered for the second piece lies where the first one's temporaries do.
  for (const Instruction& i : a.code)
    if (const Start* s = std::get_if<Start>(&i); s && s->run.action && *s->run.action == ActionId(0)) {
      const Calls& body = *p.calls[s->run.task];
      for (BufferId b : body.buffers.ids())
        if (body.buffers[b].result()) a.slots[SlotId(s->run.args.value + b.value)].offset = 0;
    }
  EXPECT_THAT(told(races(p)), HasSubstr("of activations: "));
}

TEST(Races, AFaultNamesBothInstructionsTheBytesAndWhatIsMissing) {
  Program p = lower(test::five_tasks(), test::two_actors(), test::a_stage_per_piece(), {});
  ASSERT_EQ(told(races(p)), "");
  ASSERT_TRUE(std::holds_alternative<Receive>(p.actors[ActorId(1)].code[InstructionId(0)]));
  test::changed(p.actors[ActorId(1)],
                [](test::InstructionList& code) { std::swap(code[InstructionId(0)], code[InstructionId(1)]); });
  EXPECT_EQ(
      races(p).at(0).str(),
      "[program, actor 1] bytes 64 to 80 of activations: run F1 microbatch 0 (actor 1, instruction 0, lane compute) "
      "reads while run F0 microbatch 0 (actor 0, instruction 0, lane compute) writes; nothing orders the two; "
      "hint: the message is complete at instruction 1 (receive value 0 a from 0 microbatch 0, 16 B) only, and "
      "actor 0 does not know at its instruction 0 that actor 1 has passed instruction 0");
}

}  // namespace
}  // namespace stretto

// Whoever leaves out a wait, a record, a message's order or memory of its own is found: by the static proof (races.h)
// in every build, and in a build with the thread sanitizer by running the program on asynchronous devices, too.
#include <gtest/gtest.h>

#include <cctype>
#include <functional>
#include <map>

#include "stretto/program/proofs/races.h"
#include "stretto/runtime/engine.h"
#include "support/child.h"
#include "support/instruction_list.h"
#include "support/small_models.h"

namespace stretto {
namespace {
using LaneChange = std::function<void(Lanes&)>;
using ProgramChange = std::function<void(Program&)>;

struct Mutation {
  std::string what;
  Parallel parallel;
  LaneChange lanes = {};
  ProgramChange program = {};
};
void PrintTo(const Mutation& m, std::ostream* out) { *out << m.what; }

// So many microbatches that memory of messages is used again before their receiver answers: an answer is an order, too.
std::shared_ptr<const Program> program_of(const Mutation& m) {
  const auto right =
      compile(make_model(tiny("gpt2", 2), 16), adamw(), {.microbatches = 8, .clip = 1}, m.parallel).program;
  if (!m.program) return right;
  Program changed = *right;
  m.program(changed);
  return std::make_shared<const Program>(std::move(changed));
}

std::size_t found_before_step_0(const Mutation& m) {
  const auto p = program_of(m);
  IdVector<ActorId, Lanes> lanes;
  for (ActorId a : p->actors.ids()) {
    lanes.push_back(lanes_of(*p, a));
    if (m.lanes) m.lanes(lanes[a]);
  }
  return races(*p, lanes).size();
}

// Waits of one lane for another, and what is done to each.
struct Pair {
  DeviceLane waiting, awaited;
};
template <class Change>
LaneChange each_wait(Pair pair, Change change) {
  return [=](Lanes& lanes) {
    for (InstructionId i : lanes.waits.ids()) {
      std::vector<InstructionId> kept;
      for (InstructionId j : lanes.waits[i])
        if (lanes.lane[i] != pair.waiting || lanes.lane[j] != pair.awaited)
          kept.push_back(j);
        else if (const std::optional<InstructionId> other = change(lanes, j))
          kept.push_back(*other);
      lanes.waits[i] = kept;
    }
  };
}
LaneChange no_wait(Pair pair) {
  return each_wait(pair, [](const Lanes&, InstructionId) { return std::optional<InstructionId>(); });
}
// The event is recorded before the instruction instead of after it: at the end of the one before it in its lane.
LaneChange early_record(Pair pair) {
  return each_wait(pair, [](const Lanes& lanes, InstructionId j) {
    std::optional<InstructionId> before;
    for (InstructionId k(0); k < j; k = InstructionId(k.value + 1))
      if (lanes.lane[k] == lanes.lane[j]) before = k;
    return before;
  });
}

// The order of two neighbours is turned round, wherever the first is one and the second the other.
template <class First, class Second>
void turn_round(Program& p) {
  for (ActorId a : p.actors.ids()) {
    test::changed(p.actors[a], [](test::InstructionList& code) {
      for (InstructionId i(0), next(1); code.has(next); i = next, next = InstructionId(next.value + 1))
        if (std::holds_alternative<First>(code[i]) && std::holds_alternative<Second>(code[next])) {
          std::swap(code[i], code[next]);
          next = InstructionId(next.value + 1);
        }
    });
  }
}
void receive_late(Program& p) { turn_round<Receive, stretto::Run>(p); }  // after the task that reads it
void send_early(Program& p) { turn_round<stretto::Run, Send>(p); }       // before the task that makes it

// Moves all that begins at one place of an actor's activations to another, for whoever reaches it.
void move(Program& p, ActorId whose, u64 from, u64 to) {
  const auto moved = [&](ActorId user, Slot& s) {
    if (s.arena == Arena::activations && s.elsewhere.value_or(user) == whose && s.offset == from) s.offset = to;
  };
  for (ActorId a : p.actors.ids())
    for (SlotId s : p.actors[a].slots.ids()) moved(a, p.actors[a].slots[s]);
  for (TransferId t : p.transfers.ids())
    for (Extent& e : p.transfers[t].extents) {
      moved(p.routes[p.transfers[t].route].source, e.from);
      moved(p.routes[p.transfers[t].route].target, e.to);
    }
}
// All messages to an actor lie at one place: the next one comes while the last one is read.
void one_place_for_messages(Program& p) {
  std::map<ActorId, u64> first;
  for (TransferId t : p.transfers.ids()) {
    if (!p.transfers[t].value()) continue;
    const ActorId target = p.routes[p.transfers[t].route].target;
    const Slot to = p.transfers[t].extents[0].to;
    move(p, target, to.offset, first.try_emplace(target, to.offset).first->second);
  }
}
// What is gathered lies where tasks have their temporaries.
void gather_anywhere(Program& p) {
  for (ActorId a : p.actors.ids())
    for (const Instruction& i : p.actors[a].code)
      if (const Start* s = std::get_if<Start>(&i)) {
        const Calls& body = *p.calls[s->run.task];
        for (BufferId b : body.buffers.ids())
          if (Slot& slot = p.actors[a].slots[SlotId(s->run.args.value + b.value)];
              body.buffers[b].result() && slot.arena == Arena::activations)
            slot.offset = 0;
      }
}

std::vector<Mutation> mutations() {
  using enum DeviceLane;
  const Mesh two{{"pipe", 2}};
  const struct {
    const char* who;
    Parallel parallel;
    Pair pair;
  } waits[] = {{"sums for tasks", {.names = {.data = 2}}, {gradients, compute}},
               {"tasks for sums", {.names = {.data = 2}}, {compute, gradients}},
               {"storage for tasks", {.names = {.data = 2, .zero = 3}}, {storage, compute}},
               {"tasks for storage", {.names = {.data = 2, .zero = 3}}, {compute, storage}},
               {"collectives for tasks", {.names = {.tensor = 2}}, {collectives, compute}},
               {"tasks for collectives", {.names = {.tensor = 2}}, {compute, collectives}},
               {"messages for tasks", {.mesh = two, .remote = true}, {messages, compute}},
               {"memory for messages", {.mesh = two, .schedule = "gpipe", .remote = true}, {compute, messages}}};
  std::vector<Mutation> all;
  for (const auto& w : waits) {
    all.push_back({fmt::format("no wait: {}", w.who), w.parallel, no_wait(w.pair)});
    all.push_back({fmt::format("an early record: {}", w.who), w.parallel, early_record(w.pair)});
  }
  for (const bool remote : {false, true}) {
    const Parallel p{.mesh = two, .remote = remote};
    const char* const where = remote ? ", remote" : "";
    all.push_back({fmt::format("received late{}", where), p, {}, receive_late});
    all.push_back({fmt::format("sent early{}", where), p, {}, send_early});
    all.push_back({fmt::format("messages at one place{}", where), p, {}, one_place_for_messages});
  }
  all.push_back({"gathered anywhere", {.names = {.data = 2, .zero = 3}}, {}, gather_anywhere});
  return all;
}

class Mutations : public testing::TestWithParam<Mutation> {};

TEST_P(Mutations, AreFoundBeforeStep0) { EXPECT_GT(found_before_step_0(GetParam()), 0u); }

#if defined(__SANITIZE_THREAD__)
// The sanitizer says so of a run in another process, which may do what it likes with wrong numbers.
bool reported(const Mutation& m, u64 seeds) {
  const auto p = program_of(m);
  for (u64 seed = 1; seed <= seeds; ++seed) {
    const test::Ended e = test::in_child([&] {
      Engine engine(
          p, {.seed = 1, .run = {.device = DeviceKind::async, .jitter = 3e-4, .jitter_seed = seed, .lanes = m.lanes}});
      for (int step = 1; step <= 2; ++step) engine.run(step);
    });
    if (e.error.find("WARNING: ThreadSanitizer: data race") != std::string::npos) return true;
    EXPECT_EQ(e.code, 0) << e.error;
  }
  return false;
}

TEST_P(Mutations, AreFoundByTheSanitizer) {
  EXPECT_FALSE(reported({"none", GetParam().parallel}, 1));
  EXPECT_TRUE(reported(GetParam(), 8));
}
#endif

INSTANTIATE_TEST_SUITE_P(Of, Mutations, testing::ValuesIn(mutations()), [](const auto& info) {
  std::string name = info.param.what;
  for (char& c : name)
    if (!std::isalnum(c)) c = '_';
  return name;
});

}  // namespace
}  // namespace stretto

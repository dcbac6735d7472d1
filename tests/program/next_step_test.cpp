// Two steps that are under way at once: what one does to the memory of the other is proven as it is within a step.
#include "stretto/program/next_step.h"

#include <gmock/gmock.h>

#include "stretto/program/proofs/order.h"
#include "stretto/program/proofs/races.h"
#include "support/instruction_list.h"
#include "support/small_models.h"

namespace stretto {
namespace {
using testing::HasSubstr;

Compiled of_eight_layers(const Parallel& p, double clip = 0, bool skip = false, const char* family = "gpt2") {
  const Training t{.microbatches = 8, .clip = clip, .skip_nonfinite = skip};
  return compile(make_model(tiny(family, 8), 16), adamw(), t, p);
}

std::vector<Fault> two_step_faults(const Program& p, const NextStep& n) {
  Program two = two_steps(p, n);
  std::vector<Fault> faults = settle_order(two);
  if (faults.empty()) faults = races(two);
  return faults;
}

std::string said(const std::vector<Fault>& faults) {
  std::string all;
  for (const Fault& f : faults) all += f.str() + "\n";
  return all;
}

const char* const two_step_schedules[] = {"gpipe",   "1f1b",      "zb-h1", "zb-h2", "zb-v", "interleaved-1f1b",
                                          "kimi-k2", "dualpipe-v"};

// Four equal stages, whose actors end one after the other.
std::shared_ptr<const Program> like_a_staircase() {
  const ModelConfig model{.family = "llama", .layers = 8, .width = 32, .heads = 4, .context = 16, .vocab = 50};
  return compile(make_model(model, 16), adamw(), {.microbatches = 8, .skip_nonfinite = false},
                 {.mesh = {{"pipe", 4}}, .schedule = "zb-h2", .stages = {5, 4, 4, 5}})
      .program;
}

TEST(NextStep, NothingMeetsAndNothingHangs) {
  for (const char* schedule : two_step_schedules)
    for (const double clip : {0.0, 1.0}) {
      const auto p = of_eight_layers({.mesh = {{"pipe", 4}}, .schedule = schedule}, clip, clip > 0).program;
      EXPECT_EQ(said(two_step_faults(*p, next_step(*p))), "") << schedule << " clip " << clip;
    }
  for (const Parallel& p : {Parallel{.mesh = {{"pipe", 2}}, .names = {.data = 2}, .schedule = "zb-h2"},
                            Parallel{.mesh = {{"pipe", 2}}, .names = {.tensor = 2}, .schedule = "zb-v"},
                            Parallel{.mesh = {{"pipe", 2}}, .schedule = "1f1b", .recompute = {Recompute::full}},
                            Parallel{.mesh = {{"pipe", 2}}, .schedule = "zb-h1", .remote = true},
                            Parallel{.mesh = {{"pipe", 2}}, .names = {.data = 2}, .schedule = "gpipe", .remote = true},
                            Parallel{.mesh = {{"pipe", 2}}, .names = {.data = 2, .zero = 3}, .remote = true}}) {
    const auto program = of_eight_layers(p).program;
    EXPECT_EQ(said(two_step_faults(*program, next_step(*program))), "");
  }
}

TEST(NextStep, EveryWaitIsNeeded) {
  const auto p = like_a_staircase();
  const NextStep all = next_step(*p);
  int waits = 0;
  for (ActorId a : all.waits.ids())
    for (std::size_t i = 0; i < all.waits[a].size(); ++i, ++waits) {
      NextStep fewer = all;
      fewer.waits[a].erase(fewer.waits[a].begin() + i);
      // Without it the message may be written too early, or the next one has to wait for as much at once.
      const std::string faults = said(two_step_faults(*p, fewer));
      EXPECT_THAT(faults, HasSubstr("nothing orders the two")) << "actor " << a.value << ", wait " << i;
      NextStep earlier = all;
      --earlier.waits[a][i].until.value;
      EXPECT_THAT(said(two_step_faults(*p, earlier)), HasSubstr("nothing orders the two"));
    }
  EXPECT_GT(waits, 2);
}

TEST(NextStep, WhoIsToldKnowsWhereItIsWaitedFor) {
  const auto p = of_eight_layers({.mesh = {{"pipe", 4}}, .schedule = "zb-v"}).program;
  const NextStep n = next_step(*p);
  for (const auto& waits : n.waits)
    for (const NextStepWait& w : waits) {
      const auto& told = n.told[w.actor];
      EXPECT_TRUE(std::binary_search(told.begin(), told.end(), w.until));
    }
}

// The memory of what is sent is kept as long in either of two steps as in one.
TEST(NextStep, WhatIsSentIsKeptInBothSteps) {
  const auto p = of_eight_layers({.mesh = {{"pipe", 2}}, .schedule = "gpipe", .remote = true}).program;
  const Program two = two_steps(*p, next_step(*p));
  const auto task_at = [](const Program& x, ActorId a, InstructionId i) {
    const test::InstructionList code = test::list_of(x.actors[a].code);
    for (; code.has(i); i = InstructionId(i.value + 1))
      if (const auto* r = task_of(code[i])) return std::optional(std::pair(r->task, r->microbatch.value % 8));
    return std::optional<std::pair<TaskId, std::uint32_t>>();
  };
  for (TransferId t : p->transfers.ids()) {
    const ActorId source = p->routes[p->transfers[t].route].source;
    const TransferId again(t.value + p->transfers.size());
    const InstructionId released = *p->transfers[t].released;
    if (released == p->actors[source].code.next_id()) continue;
    for (const TransferId both : {t, again})
      EXPECT_EQ(task_at(two, source, *two.transfers[both].released), task_at(*p, source, released));
  }
}

// With the norm nobody but one actor waits at the end of a step that does not need it.
TEST(NextStep, AnUpdateThatNeedsNoNormWaitsForNobody) {
  const auto p = like_a_staircase();
  int norms = 0;
  for (ActorId a : p->actors.ids()) {
    bool updated = false;
    for (const Instruction& i : p->actors[a].code) {
      const stretto::Run* r = task_of(i);
      updated = updated || (r && p->task(*r).part == Part::update);
      norms += r && p->task(*r).part == Part::clip;
      if (const Receive* x = std::get_if<Receive>(&i);
          x && std::holds_alternative<SentSquares>(p->transfers[x->transfer].what)) {
        EXPECT_TRUE(updated);
        EXPECT_EQ(a, ActorId(3));  // it begins last and ends last
      }
    }
  }
  EXPECT_EQ(norms, 1);
}

}  // namespace
}  // namespace stretto

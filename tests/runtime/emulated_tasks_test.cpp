#include "stretto/runtime/inner/emulated_tasks.h"

#include <gtest/gtest.h>

#include "support/small_models.h"

namespace stretto {
namespace {

struct TaskTimes : testing::Test {
  TaskTimes() {
    for (const Instruction& i : program.actors[ActorId(0)].code)
      if (const auto* r = task_of(i); r && program.task(*r).part == Part::F) run = *r;
  }
  const Compiled compiled = compile(make_model(tiny("gpt2", 2), 4), adamw());
  const Program& program = *compiled.program;
  stretto::Run run;
};

TEST_F(TaskTimes, PartsOfATaskTakeAsLongAsAllOfIt) {
  EmulatedTasks tasks(program, ActorId(0), Machine{.flops = 1e9}, {});
  const double whole = tasks.seconds_of(run);
  const std::size_t calls = program.calls[run.task]->calls.size();
  ASSERT_GT(calls, 2u);
  double sum = 0;
  for (CallId c : program.calls[run.task]->calls.ids()) {
    run.calls = CallRange{c, CallId(c.value + 1)};
    sum += tasks.seconds_of(run);
  }
  EXPECT_GT(whole, 0);
  EXPECT_NEAR(sum, whole, 1e-12 * whole);
}

TEST_F(TaskTimes, WithTimesPerPhaseTheFirstTaskOfAnActionTakesAll) {
  EmulatedTasks tasks(program, ActorId(0), {}, Times{.F = 2});
  for (int step = 0; step < 2; ++step) {
    tasks.begin_step();
    EXPECT_EQ(tasks.seconds_of(run), 2);
    EXPECT_EQ(tasks.seconds_of(run), 0);
  }
}

}  // namespace
}  // namespace stretto

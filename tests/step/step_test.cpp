// The verifier of steps, on two tasks written by hand.
#include "stretto/step/step.h"

#include <gmock/gmock.h>

#include "stretto/ops/square.h"
#include "stretto/step/task_builder.h"

namespace stretto {
namespace {
using testing::HasSubstr;

// F makes a value, W reads it.
Step two_tasks() {
  const Type number{f32, {}};
  Step s;
  s.inputs = {number};
  s.params = {number};
  s.accumulators = {{.param = ParamId(0), .piece = PieceId(0), .type = number}};
  s.values = {{.type = number, .bytes = 4, .producer = TaskId(0), .consumers = {TaskId(1)}, .name = "kept"}};
  BodyPool pool;
  TaskBuilder f({.part = Part::F, .piece = PieceId(0)}), w({.part = Part::W, .piece = PieceId(0)});
  f.result(square(f.argument(f32, {}, InputId(0))), ValueId(0));
  w.result(square(w.argument(f32, {}, ValueId(0))), AccumulatorId(0));
  s.tasks.push_back(std::move(f).finish(pool));
  s.tasks.push_back(std::move(w).finish(pool));
  return s;
}

std::string faults_of(const Step& s) {
  std::string all;
  for (const Fault& f : verify(s)) all += f.where + ": " + f.what + "\n";
  return all;
}

TEST(VerifyStep, AcceptsWhatFits) { EXPECT_EQ(faults_of(two_tasks()), ""); }

TEST(VerifyStep, FindsBindingsOfNothing) {
  Step s = two_tasks();
  s.tasks.back().outputs.back() = AccumulatorId(3);
  s.inputs.clear();
  EXPECT_EQ(faults_of(s), "task F0: argument 0 is bound to nothing\ntask W0: result 0 is bound to nothing\n");
}

TEST(VerifyStep, FindsMissingBindings) {
  Step s = two_tasks();
  s.tasks.back().inputs.clear();
  EXPECT_EQ(faults_of(s),
            "task W0: has 1 arguments and 0 bindings\n"
            "value kept: is read by 0 tasks and not by those 1 that are said to read it\n");
}

TEST(VerifyStep, FindsValuesOfOtherMakersAndReaders) {
  Step s = two_tasks();
  s.values.back().producer = TaskId(1);
  EXPECT_EQ(faults_of(s), "value kept: is not made by the task that is said to make it\n");
  s = two_tasks();
  s.values.back().consumers = {TaskId(0)};
  EXPECT_THAT(faults_of(s), HasSubstr("value kept: is read by 1 tasks"));
}

TEST(VerifyStep, LooksIntoBodies) {
  Step s = two_tasks();
  Graph broken = *s.tasks.back().body;
  broken.nodes.back().operands[0].node = NodeId(9);
  s.tasks.back().body = std::make_shared<const Graph>(broken);
  EXPECT_THAT(faults_of(s), HasSubstr("task W0, verify %1 square: uses %9:0 which is not made before it"));
}

}  // namespace
}  // namespace stretto

// set_apart() on steps of a few tasks, written by hand: parameters of two ranks that are gathered to be used.
#include <gmock/gmock.h>

#include "stretto/ops/all_gather.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/reduce_scatter.h"
#include "stretto/ops/square.h"
#include "stretto/step/storage.h"
#include "stretto/step/task_builder.h"
#include "support/step_text.h"

namespace stretto {
namespace {
using test::lines;
using test::values;
using testing::ElementsAre;

const Dim whole_type{"w", 4}, part_type{.name = "part", .size = 2, .logical = 4, .axes = {"data"}};

// Every task has the step's dims as its own.
class ByHand {
 public:
  ByHand() { step.dims = {whole_type, part_type}; }
  Type whole() const { return {f32, {DimId(0)}}; }
  Type part() const { return {f32, {DimId(1)}}; }
  TaskBuilder task(Part p, PieceId piece = PieceId(0)) const {
    TaskBuilder t({.part = p, .piece = piece});
    t.graph().dims = step.dims;
    return t;
  }
  Tensor argument(TaskBuilder& t, const Type& type, Binding from) const { return {&t.body(), t.argument(type, from)}; }
  Tensor gathered(Tensor x) const { return all_gather(x, DimId(1), DimId(0), {"data"}); }
  Tensor scattered(Tensor x) const { return reduce_scatter(x, DimId(0), DimId(1), {"data"}); }
  void add(TaskBuilder t) { step.tasks.push_back(std::move(t).finish(pool)); }
  Step step;
  BodyPool pool;
};

// F gathers two parameters and keeps one of them for I; W scatters a gradient.
Step three_tasks() {
  ByHand h;
  h.step.params = {h.part(), h.part()};
  h.step.outputs = {{"y", h.whole(), 16}};
  h.step.accumulators = {{.param = ParamId(0), .piece = PieceId(0), .type = h.part()}};
  h.step.values = {
      {.type = h.whole(), .bytes = 16, .producer = TaskId(0), .consumers = {TaskId(1)}, .name = "gathered"},
      {.type = h.whole(), .bytes = 16, .producer = TaskId(1), .consumers = {TaskId(2)}, .name = "made"}};
  TaskBuilder f = h.task(Part::F);
  const Tensor a = h.gathered(h.argument(f, h.part(), ParamId(0)));
  const Tensor b = h.gathered(h.argument(f, h.part(), ParamId(1)));
  f.result(a * b, OutputId(0));
  f.result(a, ValueId(0));
  h.add(std::move(f));
  TaskBuilder i = h.task(Part::I);
  i.result(square(h.argument(i, h.whole(), ValueId(0))), ValueId(1));
  h.add(std::move(i));
  TaskBuilder w = h.task(Part::W);
  const Tensor g = h.argument(w, h.whole(), ValueId(1));
  w.result(h.scattered(g * g), AccumulatorId(0));
  h.add(std::move(w));
  return h.step;
}

TEST(SetApart, GathersAndScattersBecomeTasks) {
  const Step s = set_apart(three_tasks());
  EXPECT_THAT(lines(s), ElementsAre("F0: value1 value2 -> output0 | mul",  //
                                    "I0: value1 -> value0 | square",       // not from F any more
                                    "W0: value0 -> value3 | mul",          //
                                    "U0: param0 param1 -> value1 value2 | all_gather all_gather",
                                    "S0: value3 -> value4 | reduce_scatter",  //
                                    "A0: value4 -> gradient0 | copy"));
  EXPECT_THAT(values(s), ElementsAre("I0 -> W0", "U0 -> I0 F0", "U0 -> F0", "W0 -> S0", "S0 -> A0"));
}

TEST(SetApart, ValuesOfStorageAreNoActivations) {
  const Step s = set_apart(three_tasks());
  EXPECT_TRUE(gathered(s, ValueId(1)));
  EXPECT_TRUE(of_storage(s, ValueId(3)));
  EXPECT_FALSE(of_storage(s, ValueId(0)));
}

// Backward gathers again, and only what it reads.
TEST(SetApart, BackwardHasAGatherOfItsOwn) {
  ByHand h;
  h.step.params = {h.part(), h.part()};
  h.step.outputs = {{"y", h.whole(), 16}, {"z", h.whole(), 16}};
  TaskBuilder f = h.task(Part::F), i = h.task(Part::I);
  const Tensor a = h.gathered(h.argument(f, h.part(), ParamId(0)));
  const Tensor b = h.gathered(h.argument(f, h.part(), ParamId(1)));
  f.result(a * b, OutputId(0));
  i.result(square(h.gathered(h.argument(i, h.part(), ParamId(0)))), OutputId(1));
  h.add(std::move(f));
  h.add(std::move(i));
  const Step s = set_apart(h.step);
  EXPECT_THAT(lines(s), ElementsAre("F0: value0 value1 -> output0 | mul",  //
                                    "I0: value0 -> output1 | square",      //
                                    "U0: param0 param1 -> value0 value1 | all_gather all_gather",
                                    "U0: param0 -> value0 | all_gather"));
  EXPECT_NE(s.tasks[TaskId(2)].about, s.tasks[TaskId(3)].about);
  EXPECT_EQ(s.values[ValueId(0)].producer, TaskId(2));
}

// A gather of what is no parameter, and a scattered gradient that is read otherwise, stay.
TEST(SetApart, OthersStayWhereTheyAre) {
  ByHand h;
  h.step.params = {h.part()};
  h.step.inputs = {h.part()};
  h.step.outputs = {{"y", h.whole(), 16}, {"norm", h.part(), 8}};
  h.step.accumulators = {{.param = ParamId(0), .piece = PieceId(0), .type = h.part()}};
  TaskBuilder f = h.task(Part::F);
  f.result(h.gathered(h.argument(f, h.part(), InputId(0))), OutputId(0));
  h.add(std::move(f));
  TaskBuilder w = h.task(Part::W);
  const Tensor g = h.gathered(h.argument(w, h.part(), InputId(0))), cut = h.scattered(g);
  w.result(cut, AccumulatorId(0));
  w.result(square(cut), OutputId(1));
  h.add(std::move(w));
  const std::vector<std::string> before = lines(h.step);
  EXPECT_EQ(lines(set_apart(h.step)), before);
}

}  // namespace
}  // namespace stretto

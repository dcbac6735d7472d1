#include "stretto/step/task_builder.h"

#include <gmock/gmock.h>

#include "stretto/ops/add.h"
#include "stretto/ops/input.h"
#include "stretto/ops/mul.h"
#include "support/step_text.h"

namespace stretto {
namespace {
using test::line;

const Dim row_dim{"row", 4};

TEST(TaskBuilder, BindsArgumentsAndResults) {
  BodyPool pool;
  TaskBuilder t({.part = Part::F, .piece = PieceId(2)});
  const Tensor a = t.argument(f32, row_dim, InputId(0)), b = t.argument(f32, row_dim, ParamId(3));
  t.result(a * b, ValueId(1));
  const Task task = std::move(t).finish(pool);
  EXPECT_EQ(line(task), "F2: input0 param3 -> value1 | mul");
  EXPECT_EQ(task.body->nodes[1].attrs.as<InputAttrs>().name, "1");
}

TEST(TaskBuilder, ResultsHaveMemoryOfTheirOwn) {
  BodyPool pool;
  TaskBuilder t({.part = Part::F});
  const Tensor a = t.argument(f32, row_dim, InputId(0)), twice = a + a;
  t.result(a, ValueId(0));      // an argument
  t.result(twice, ValueId(1));  // as it is
  t.result(twice, ValueId(2));  // a result already
  EXPECT_EQ(line(std::move(t).finish(pool)), "F0: input0 -> value0 value1 value2 | add copy copy");
}

TEST(TaskBuilder, NumbersArgumentsThatOthersMade) {
  BodyPool pool;
  Builder body;
  const Tensor rate = input(body, "lr", f32, {}, true);
  TaskBuilder t({.part = Part::update}, body);
  const Tensor p = t.argument(f32, row_dim, ParamId(0));
  t.bind(rate.value, ScalarId(5));
  t.result(p * rate, ParamId(0));
  const Task task = std::move(t).finish(pool);
  EXPECT_EQ(line(task), "update0: scalar5 param0 -> param0 | mul");
  EXPECT_FALSE(task.body->nodes[0].attrs.as<InputAttrs>().per_step);
}

TEST(TaskBuilder, RefusesAnArgumentWithoutABinding) {
  BodyPool pool;
  TaskBuilder t({.part = Part::F});
  t.result(t.argument(Type{f32, {}}), ValueId(0));
  EXPECT_THROW(std::move(t).finish(pool), Error);
}

TEST(TaskBuilder, OpensATaskAndChangesIt) {
  BodyPool pool;
  TaskBuilder made({.part = Part::I, .piece = PieceId(1)});
  const Tensor a = made.argument(f32, row_dim, ValueId(0)), b = made.argument(f32, row_dim, ValueId(1));
  const Tensor sum = a + b, product = sum * b;
  made.result(sum, ValueId(2));
  made.result(product, ValueId(3));
  const Task task = std::move(made).finish(pool);

  TaskBuilder same(task);
  EXPECT_EQ(std::move(same).finish(pool).body, task.body) << "unchanged, it is the same";

  TaskBuilder t(task);
  t.make_argument(sum.value.node, ParamId(7));  // given instead of computed
  t.drop_result(ResultId(0));
  t.rebind(ValueId(1), ValueId(9));
  const std::vector<Binding> gone = t.prune();
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(test::text(gone[0]), "value0");
  EXPECT_EQ(line(std::move(t).finish(pool)), "I1: value9 param7 -> value3 | mul");
}

TEST(TaskBuilder, EqualBodiesAreShared) {
  BodyPool pool;
  std::vector<Task> tasks;
  for (std::uint32_t param : {0u, 1u}) {
    TaskBuilder t({.part = Part::norm, .about = ParamId(param)});
    t.result(t.argument(f32, row_dim, AccumulatorId(param)) * 2, SquareId(param));
    tasks.push_back(std::move(t).finish(pool));
  }
  EXPECT_EQ(tasks[0].body, tasks[1].body);
}

}  // namespace
}  // namespace stretto

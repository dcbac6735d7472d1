// A step of five tasks in two pieces, written by hand, and programs as short lines.
#pragma once
#include <string>
#include <vector>

#include "stretto/ops/mul.h"
#include "stretto/ops/square.h"
#include "stretto/program/lower.h"
#include "stretto/step/task_builder.h"
#include "support/instruction_list.h"

namespace stretto::test {

// F0: x * w0 -> a; F1: a * w1 -> y; I1 makes b for W0 of the first piece; W1 and W0 make gradients.
inline Step five_tasks() {
  const Dim row{"row", 4};
  Step s;
  s.dims = {row};
  const Type type{f32, {DimId(0)}};
  s.params = {type, type};
  s.inputs = {type};
  s.outputs = {{"y", type, 16}};
  s.pieces = 2;
  for (int i : {0, 1}) s.accumulators.push_back({.param = ParamId(i), .piece = PieceId(i), .type = type});
  const TaskId F0(0), W0(1), F1(2), I1(3), W1(4);
  s.values = {{.type = type, .bytes = 16, .producer = F0, .consumers = {F1, W1}, .name = "a"},
              {.type = type, .bytes = 16, .producer = I1, .consumers = {W0}, .name = "b"}};
  BodyPool pool;
  const auto add = [&](Part part, int piece, auto make) {
    TaskBuilder t({.part = part, .piece = PieceId(piece)});
    make(t, [&](Binding from) { return t.argument(f32, row, from); });
    s.tasks.push_back(std::move(t).finish(pool));
  };
  const ValueId a(0), b(1);
  add(Part::F, 0, [&](TaskBuilder& t, auto in) { t.result(in(InputId(0)) * in(ParamId(0)), a); });
  add(Part::W, 0, [&](TaskBuilder& t, auto in) { t.result(in(b)*in(InputId(0)), AccumulatorId(0)); });
  add(Part::F, 1, [&](TaskBuilder& t, auto in) { t.result(in(a)*in(ParamId(1)), OutputId(0)); });
  add(Part::I, 1, [&](TaskBuilder& t, auto in) { t.result(square(in(ParamId(1))), b); });
  add(Part::W, 1, [&](TaskBuilder& t, auto in) { t.result(square(in(a)), AccumulatorId(1)); });
  return s;
}

// Two actors of a piece each, two microbatches.
inline Schedule two_actors() {
  Schedule s = looped({.actors = 2, .microbatches = 2});
  s.rows[0].F(0, 0).F(0, 1).B(0, 0).B(0, 1);
  s.rows[1].F(1, 0).B(1, 0).F(1, 1).B(1, 1);
  return s;
}
inline IdVector<PieceId, StageId> a_stage_per_piece() { return {StageId(0), StageId(1)}; }

// "F0 m1", "send a m1", "receive b m0", "start U0", "await U0"; runs in parts with their calls: "F0 m0 [0, 2)".
inline std::vector<std::string> lines(const Program& p, ActorId a) {
  const auto task = [&](TaskId t) {
    const Task& x = p.step->tasks[t];
    return fmt::format("{}{}", name_of(x.part), x.piece ? fmt::format("{}", x.piece->value) : "");
  };
  const auto message = [&](TransferId id) {
    const SentValue* v = p.transfers[id].value();
    return v ? fmt::format("{} m{}", p.step->values[v->value].name, v->microbatch.value)
             : p.routes[p.transfers[id].route].name;
  };
  std::vector<std::string> all;
  for (const Instruction& i : p.actors[a].code)
    all.push_back(match(
        i,
        [&](const Run& r) {
          const std::string calls =
              r.calls ? fmt::format(" [{}, {})", r.calls->from.value, r.calls->to.value) : std::string();
          return fmt::format("{} m{}{}", task(r.task), r.microbatch.value, calls);
        },
        [&](const Send& s) { return "send " + message(s.transfer); },
        [&](const Receive& r) { return "receive " + message(r.transfer); },
        [&](const Start& s) { return "start " + task(s.run.task); },
        [&](const Await& w) { return "await " + task(w.task); }));
  return all;
}

}  // namespace stretto::test

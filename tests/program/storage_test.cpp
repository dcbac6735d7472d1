// Collectives of storage that is cut over ranks, as instructions: parameters a piece ahead, gradients after the tasks
// that make them.
#include <gtest/gtest.h>

#include <algorithm>

#include "stretto/base/text.h"
#include "stretto/program/marks.h"
#include "stretto/schedule/csv.h"
#include "stretto/simulate/step_time.h"
#include "stretto/step/storage.h"
#include "stretto/stretto.h"
#include "support/small_models.h"

namespace stretto {
namespace {

Compiled compiled(const Parallel& p, int microbatches = 2, int layers = 2) {
  const ModelConfig config{.family = "gpt2", .layers = layers, .width = 16, .heads = 2, .context = 8, .vocab = 32};
  return compile(make_model(config, 8), adamw(), {.microbatches = microbatches}, p);
}

// "U3 start", "U3 await", "F3", ... of one actor; only tasks of the microbatch loop and their collectives.
std::vector<std::string> listed(const Compiled& c, ActorId actor = ActorId(0)) {
  std::vector<std::string> all;
  const auto name = [&](TaskId task, std::string_view what) {
    const Task& t = c.program->step->tasks[task];
    if (t.part >= Part::U && t.part <= Part::A)
      all.push_back(fmt::format("{}{}{}", name_of(t.part), t.piece->value, what));
  };
  for (const Instruction& i : c.program->actors[actor].code) {
    if (const Start* s = std::get_if<Start>(&i)) name(s->run.task, " start");
    if (const Await* w = std::get_if<Await>(&i)) name(w->task, " await");
    if (const stretto::Run* r = std::get_if<stretto::Run>(&i)) name(r->task, "");
  }
  return all;
}
i64 count(const std::vector<std::string>& all, std::string_view what) {
  return std::count_if(all.begin(), all.end(), [&](const std::string& s) { return s.find(what) != s.npos; });
}
bool begins(const std::vector<std::string>& all, const std::vector<std::string>& with) {
  return all.size() >= with.size() && std::equal(with.begin(), with.end(), all.begin());
}

TEST(Storage, ParametersAreGatheredAPieceAhead) {
  const std::vector<std::string> all = listed(compiled({.names = {.data = 2, .zero = 3}}, 1, 1));
  EXPECT_TRUE(begins(all, {"U0 start", "U0 await", "U1 start", "F0", "U1 await", "U2 start", "F1", "U2 await",
                           "U3 start", "F2", "U3 await", "U2 start", "F3", "I3", "U2 await", "U1 start", "I2"}))
      << join(all, ", ");
}

TEST(Storage, GradientsAreScatteredBehindTheTasksThatMakeThem) {
  const std::vector<std::string> all = listed(compiled({.names = {.data = 2, .zero = 2}}, 1, 1));
  const auto first = std::find(all.begin(), all.end(), "W3");
  ASSERT_NE(first, all.end());
  EXPECT_EQ(std::vector<std::string>(first, all.end()),
            (std::vector<std::string>{"W3", "S3 start", "W2", "S3 await", "A3", "S2 start", "W1", "S2 await", "A2",
                                      "S1 start", "W0", "S1 await", "A1", "S0 start", "S0 await", "A0"}));
}

TEST(Storage, OptimizerStateAloneIsScatteredToOncePerStep) {
  const Compiled c = compiled({.names = {.data = 2, .zero = 1}}, 2, 1);
  const std::vector<std::string> all = listed(c);
  i64 trained = 0;
  for (const CompiledParam& p : c.params) trained += p.accumulators.size() == 1;
  EXPECT_EQ(count(all, "S"), 2 * trained);  // each is started and awaited
  EXPECT_EQ(count(all, "A"), 0);
  const auto first = std::find_if(all.begin(), all.end(), [](const std::string& s) { return s[0] == 'S'; });
  EXPECT_GE(count({first, all.end()}, "W"), 3);  // backward goes on meanwhile
}

TEST(Storage, ForAStepOrForAMicrobatch) {
  const Parallel often{.names = {.data = 2, .zero = 3}},
      once{.names = {.data = 2, .zero = 3}, .reshard = Reshard::step};
  const int pieces = compiled(once).program->step->pieces;
  EXPECT_EQ(count(listed(compiled(once, 4)), "U") / 2, pieces);
  // Forward and backward of every piece and microbatch, but for the last piece, whose backward follows its forward, and
  // the first, whose backward reads no parameter.
  EXPECT_EQ(count(listed(compiled(often, 4)), "U") / 2, 4 * (2 * pieces - 2));
}

// Over links on which gathers and reduce-scatters take a third of the step nearly all of them is hidden.
TEST(Storage, GathersAndScattersAreHidden) {
  const Compiled c =
      compile(make_model({.family = "gpt2", .layers = 6, .width = 256, .heads = 4, .context = 64, .vocab = 256}, 8),
              sgd(), {.microbatches = 2}, {.names = {.data = 2, .zero = 3}});
  const Machine machine{.flops = 1e12, .memory_bandwidth = 1e18};
  const double alone = step_time(*c.program, {.machine = machine}).seconds;
  Cluster cluster{.machine = machine, .between = {.bandwidth = 1e9}};
  const StepTime unit = step_time(*c.program, cluster);
  EXPECT_GT(unit.gathers, unit.sums);  // twice per microbatch, and once
  cluster.between.bandwidth *= (unit.gathers + unit.sums) / (0.3 * alone);
  const StepTime t = step_time(*c.program, cluster);
  EXPECT_LT(t.gathers_exposed + t.exposed, 0.2 * (t.gathers + t.sums));
  EXPECT_GT(t.gathers_exposed, 0);  // the first
}

i64 index_of(const std::vector<std::string>& all, std::string_view what) {
  return std::find(all.begin(), all.end(), what) - all.begin();
}

// A schedule's own UNSHARD gathers all of a stage there.
TEST(Storage, MarksOfAScheduleAreHonoured) {
  const Schedule s = read_csv("0UNSHARD,0F0,0F1,0RESHARD,0UNSHARD,0B0,0B1,0RESHARD,0REDUCE_GRAD\n", "marked");
  const std::vector<std::string> all = listed(compiled({.names = {.data = 2, .zero = 3}, .schedule = s}, 2, 1));
  EXPECT_TRUE(begins(all, {"U0 start", "U0 await", "U1 start", "U2 start", "U3 start", "F0", "U1 await", "F1"}) ||
              begins(all, {"U0 start", "U1 start", "U2 start", "U3 start", "U0 await", "F0", "U1 await", "F1"}))
      << join(all, ", ");
  EXPECT_EQ(count(all, "U2 start"), 2);  // for both forwards, and for both backwards
  EXPECT_LT(index_of(all, "F3"), index_of(all, "I3"));
}

// Sums start where the schedule says so, and not before.
TEST(Storage, ReductionsOfAScheduleAreHonoured) {
  const auto first_sum = [](const char* text) {
    const Compiled c =
        compiled({.mesh = {{"pipe", 1}}, .names = {.data = 2}, .schedule = read_csv(text, "marked")}, 2, 2);
    i64 runs = 0;
    for (const Instruction& i : c.program->actors[ActorId(0)].code) {
      if (const Start* s = std::get_if<Start>(&i); s && c.program->task(s->run).part == Part::sum) return runs;
      const stretto::Run* r = std::get_if<stretto::Run>(&i);
      runs += r && r->action;
    }
    return i64(-1);
  };
  const i64 late = first_sum("0F0,1F0,0F1,1F1,1B0,1B1,0B0,0B1,0REDUCE_GRAD,1REDUCE_GRAD\n");
  const i64 early = first_sum("0F0,1F0,0F1,1F1,1B0,1B1,1REDUCE_GRAD,0B0,0B1,0REDUCE_GRAD\n");
  EXPECT_GT(early, 0);
  EXPECT_LT(early, late);
}

// What a program does, in the schedule's own notation: a stage is whole while any of its pieces is. The last piece
// stays gathered from one microbatch to the next where no other piece works between them. Read again it says the same.
TEST(Storage, IsWrittenAsMarks) {
  const Parallel p{.mesh = {{"pipe", 2}}, .names = {.data = 2, .zero = 3}, .schedule = "zb-h1"};
  const std::string text = write_csv(with_marks(*compiled(p).program));
  EXPECT_EQ(text,
            "0UNSHARD,0F0,0RESHARD,0UNSHARD,0F1,0I0,0W0,0RESHARD,0UNSHARD,0I1,0W1,0RESHARD,0REDUCE_GRAD\n"
            "1UNSHARD,1F0,1I0,1F1,1I1,1W0,1W1,1RESHARD,1REDUCE_GRAD\n");
  Parallel again = p;
  again.schedule = read_csv(text, "written");
  EXPECT_EQ(write_csv(with_marks(*compiled(again).program)), text);
  EXPECT_TRUE(with_marks(*compiled({.mesh = {{"pipe", 2}}}).program).marks.empty());
}

TEST(Storage, IsSaidInWords) {
  const std::string text = compiled({.names = {.data = 2, .zero = 3}}, 1, 1).program->str();
  for (const char* words : {"start gather of parameters of piece 2", "await gather of parameters of piece 2",
                            "start reduce-scatter of gradients of piece 2"})
    EXPECT_NE(text.find(words), text.npos) << words;
}

}  // namespace
}  // namespace stretto

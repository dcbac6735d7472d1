// What F keeps under each choice of recompute.
#include "stretto/step/recompute.h"

#include <gtest/gtest.h>

#include <set>

#include "stretto/ops/contract.h"
#include "stretto/ops/input.h"
#include "stretto/ops/ops.h"
#include "stretto/step/split.h"
#include "support/small_models.h"

namespace stretto {
namespace {

Compiled compiled(const ModelConfig& c, Recompute how, int actors = 2) {
  return compile(make_model(c, 8), adamw(), {.microbatches = 2}, {.mesh = {{"pipe", actors}}, .recompute = {how}});
}

// Forward values that R, I or W of the same stage read from F.
std::vector<const CrossValue*> kept(const Compiled& c) {
  const Step& s = *c.program->step;
  const auto stage = [&](TaskId task) { return c.program->stage_of[*s.tasks[task].piece]; };
  std::vector<const CrossValue*> all;
  for (const CrossValue& v : s.values)
    for (TaskId reader : v.consumers)
      if (s.tasks[v.producer].part == Part::F && s.tasks[reader].part != Part::F &&
          stage(v.producer) == stage(reader)) {
        all.push_back(&v);
        break;
      }
  return all;
}

std::size_t bytes(const std::vector<const CrossValue*>& values) {
  std::size_t n = 0;
  for (const CrossValue* v : values) n += v->bytes;
  return n;
}

int count(const Step& s, Part part, const Op& op) {
  int n = 0;
  for (const Task& t : s.tasks)
    if (t.part == part)
      for (const Node& node : t.body->nodes) n += node.op == &op;
  return n;
}

TEST(Recompute, FullKeepsTheStagesInputsOnly) {
  for (const char* family : {"gpt2", "llama", "mlp"}) {
    const Compiled c = compiled(tiny(family, 3), Recompute::full);
    EXPECT_TRUE(kept(c).empty()) << family;
    std::set<ValueId> arrived;  // at the second stage, for its backward
    const Step& s = *c.program->step;
    for (ValueId v : s.values.ids())
      for (TaskId reader : s.values[v].consumers)
        if (s.tasks[s.values[v].producer].part == Part::F && s.tasks[reader].part != Part::F) arrived.insert(v);
    EXPECT_EQ(arrived.size(), 1u) << family << ": one edge between two stages";
  }
}

// Layer by layer: a piece keeps what it reads of others, and makes the rest again when its own backward comes.
TEST(Recompute, LayerKeepsTheInputsOfPieces) {
  const Compiled c = compiled(tiny("gpt2", 3), Recompute::layer);
  const Step& s = *c.program->step;
  for (const CrossValue& v : s.values)
    for (TaskId reader : v.consumers) {
      const Task &maker = s.tasks[v.producer], &user = s.tasks[reader];
      if (user.part == Part::F || maker.part == Part::I) continue;
      EXPECT_TRUE(maker.part != Part::F || maker.piece != user.piece) << v.name << " is kept by its own piece";
      EXPECT_TRUE(maker.part != Part::R || maker.piece == user.piece) << v.name << " is made again for another piece";
    }
  // One after the other: each piece's R right before its I, and its W right after.
  std::string order;
  for (const Instruction& i : c.program->actors[ActorId(1)].code)
    if (const Run* r = std::get_if<Run>(&i); r && r->action && r->microbatch == MicrobatchId(0))
      if (const Task& t = c.program->task(*r);
          t.part != Part::F && *t.piece > PieceId(c.program->pieces_per_stage()[0]))
        order += name_of(t.part);
  EXPECT_EQ(order.substr(0, 6), "RIWRIW");
}

TEST(Recompute, NoneMakesNothingAgain) {
  const Compiled c = compiled(tiny("gpt2"), Recompute::none);
  for (const Task& t : c.program->step->tasks) EXPECT_NE(t.part, Part::R);
}

TEST(Recompute, SelectiveMakesNoProductAgain) {
  for (const char* family : {"gpt2", "llama"}) {
    ModelConfig config = tiny(family, 3);
    config.dropout = 0.1;
    const Compiled none = compiled(config, Recompute::none), c = compiled(config, Recompute::selective);
    const Step& s = *c.program->step;
    EXPECT_EQ(count(s, Part::R, contract_op), 0) << family;
    EXPECT_EQ(count(s, Part::R, attention_op), 0) << family;
    EXPECT_EQ(count(s, Part::R, cross_entropy_op), 0) << family;
    EXPECT_GT(count(s, Part::R, *(config.family == "gpt2" ? &layer_norm_op : &rms_norm_op)), 0) << family;
    EXPECT_LT(bytes(kept(c)), 0.8 * double(bytes(kept(none)))) << family;
  }
}

TEST(Recompute, SelectiveKeepsNoScoresOfAllPositionsForAllPositions) {
  ModelConfig config = tiny("gpt2", 2);
  config.attention_dropout = 0.1;  // attention written out: scores are results of a contraction
  const auto scores = [](const Compiled& c) {
    int n = 0;
    for (const CrossValue* v : kept(c)) {
      bool seq = false, seq_k = false;
      for (DimId d : v->type.dims) {
        seq |= c.program->step->dims[d.value].name == "seq_q";
        seq_k |= c.program->step->dims[d.value].name == "seq_k";
      }
      n += seq && seq_k;
    }
    return n;
  };
  EXPECT_GT(scores(compiled(config, Recompute::none)), 0);
  const Compiled c = compiled(config, Recompute::selective);
  EXPECT_EQ(scores(c), 0);
  EXPECT_EQ(count(*c.program->step, Part::R, contract_op), 2) << "the scores of each layer";
}

// R makes nothing for nobody: every result of every R is read, and every node of its body is needed for a result.
TEST(Recompute, MakesAgainOnlyWhatIsNeeded) {
  for (Recompute how : {Recompute::full, Recompute::layer, Recompute::selective}) {
    const Compiled c = compiled(tiny("gpt2", 3), how);
    for (const Task& t : c.program->step->tasks)
      EXPECT_TRUE(t.part != Part::R || prune(*t.body).nodes.size() == t.body->nodes.size()) << str(t);
    // The last piece's logits have to be made again under full recompute, but no stage's output has.
    const PieceId last_of_first(c.program->pieces_per_stage()[0] - 1);
    for (const CrossValue& v : c.program->step->values)
      for (TaskId reader : v.consumers) {
        const Task &maker = c.program->step->tasks[v.producer], &user = c.program->step->tasks[reader];
        EXPECT_TRUE(maker.part != Part::R || maker.piece != last_of_first || user.piece == last_of_first) << v.name;
      }
  }
}

TEST(Recompute, PlansLessMemory) {
  const auto activations = [](Recompute how) {
    const Compiled c = compile(make_model(tiny("gpt2", 4), 32), adamw(), {.microbatches = 8},
                               {.mesh = {{"pipe", 2}}, .schedule = "gpipe", .recompute = {how}});
    return c.program->actors[ActorId(0)].bytes[Arena::activations];
  };
  EXPECT_LT(activations(Recompute::selective), 0.7 * double(activations(Recompute::none)));
  EXPECT_LT(activations(Recompute::full), 0.5 * double(activations(Recompute::selective)));
  EXPECT_LT(activations(Recompute::layer), 0.5 * double(activations(Recompute::selective)));
}

}  // namespace
}  // namespace stretto

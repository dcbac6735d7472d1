// A collective in the middle of a task is started at one place and awaited at a later one, with calls of the same task
// between them.
#include <gmock/gmock.h>

#include <set>

#include "program/by_hand.h"
#include "stretto/ops/add.h"
#include "stretto/ops/all_reduce.h"
#include "stretto/program/memory/memory.h"
#include "stretto/program/proofs/order.h"
#include "stretto/stretto.h"
#include "support/small_models.h"

namespace stretto {
namespace {
using testing::ElementsAre;
using testing::HasSubstr;

std::set<BufferId> buffers_of(const KernelCall& c) {
  std::set<BufferId> all;
  for (const auto* refs : {&c.in, &c.out})
    for (const Ref& r : *refs)
      if (r.buffer) all.insert(*r.buffer);
  return all;
}

// One run as parts: every collective starts where it stands and is awaited before the next call that touches its
// memory.
class InParts {
 public:
  InParts(const Program& p, ActorProgram& a, Code& out) : p_(p), a_(a), out_(out) {}
  void run(const stretto::Run& r) {
    const Calls& body = *p_.calls[r.task];
    run_ = r;
    from_ = CallId(0);
    for (CallId c : body.calls.ids()) {
      const std::set<BufferId> mine = buffers_of(body.calls[c]);
      for (std::size_t k = 0; k < pending_.size();) {
        const bool touched =
            std::any_of(mine.begin(), mine.end(), [&](BufferId b) { return pending_[k].buffers.contains(b); });
        touched ? await(k, c) : void(++k);
      }
      if (!body.graph.node(body.calls[c].node).op->collective) continue;
      flush(c);
      from_ = CallId(c.value + 1);
      const CollectiveId id(a_.collectives++);
      out_.push_back(Start{part(c, from_), id});
      pending_.push_back({id, mine});
    }
    const CallId end(body.calls.size());
    while (!pending_.empty()) await(0, end);
    flush(end);
  }
  int apart = 0;  // calls that run while a collective is under way

 private:
  stretto::Run part(CallId from, CallId to) const {
    stretto::Run r = run_;
    r.calls = CallRange{from, to};
    return r;
  }
  void flush(CallId to) {
    if (from_ < to) {
      out_.push_back(part(from_, to));
      if (!pending_.empty()) apart += to.value - from_.value;
    }
    from_ = to;
  }
  void await(std::size_t k, CallId at) {
    flush(at);
    out_.push_back(Await{pending_[k].id, run_.task});
    pending_.erase(pending_.begin() + k);
  }
  struct Pending {
    CollectiveId id;
    std::set<BufferId> buffers;
  };
  const Program& p_;
  ActorProgram& a_;
  Code& out_;
  stretto::Run run_;
  CallId from_;
  std::vector<Pending> pending_;
};

// All tasks that have collectives, in parts; memory is planned anew.
Program in_parts(Program p, int& apart) {
  for (ActorProgram& a : p.actors) {
    Code out;
    InParts parts(p, a, out);
    for (const Instruction& i : a.code) {
      const stretto::Run* r = std::get_if<stretto::Run>(&i);
      const bool talks =
          r && std::any_of(p.calls[r->task]->calls.begin(), p.calls[r->task]->calls.end(), [&](const KernelCall& c) {
            return p.calls[r->task]->graph.node(c.node).op->collective != nullptr;
          });
      talks ? parts.run(*r) : void(out.push_back(i));
    }
    apart += parts.apart;
    a.code = std::move(out);
    a.slots.clear();
    a.param_at.clear(), a.frozen_at.clear();
    a.bytes = {};
  }
  refuse(settle_order(p));
  plan_memory(p);
  return p;
}

TEST(RunsInParts, HaveTheBitsOfWholeOnes) {
  int apart = 0;
  for (const ParallelNames& names :
       {ParallelNames{.tensor = 2}, {.tensor = 2, .sequence = true}, {.data = 2, .tensor = 2, .zero = 3}})
    for (const char* family : {"gpt2", "llama"}) {
      const Compiled whole =
          compile(make_model(tiny(family), 8), adamw(), {.microbatches = 2, .clip = 1},
                  {.mesh = {{"pipe", 2}}, .names = names, .schedule = "zb-h1", .overlap = Overlap::none});
      Compiled parts = whole;
      parts.program = std::make_shared<const Program>(in_parts(*whole.program, apart));
      EXPECT_THAT(verify(*parts.program), testing::IsEmpty());
      Trainer a(whole), b(parts);
      const Batch batch = random_batch(whole, 3);
      for (int step = 0; step < 3; ++step) EXPECT_EQ(a.step(batch).loss, b.step(batch).loss);
      EXPECT_EQ(a.parameters_hash(), b.parameters_hash()) << family;
    }
  EXPECT_GT(apart, 0) << "some calls run while a collective is under way";
}

// x -> sum over ranks; x -> square; both are added: the square runs beside the sum.
TEST(RunsInParts, AreVerified) {
  const Dim row{"row", 4};
  Step s;
  s.dims = {row};
  const Type type{f32, {DimId(0)}};
  s.inputs = {type};
  s.outputs = {{"y", type, 16}};
  TaskBuilder t({.part = Part::F, .piece = PieceId(0)});
  const Tensor x = t.argument(f32, row, InputId(0));
  const Tensor total = all_reduce(x, {"data"});
  t.result(total + square(x), OutputId(0));
  BodyPool pool;
  s.tasks.push_back(std::move(t).finish(pool));
  Schedule schedule = looped({.actors = 1, .microbatches = 1});
  schedule.rows[0].F(0, 0);
  const Program whole = lower(s, schedule, {StageId(0)}, {.mesh = {{"data", 2}}});
  int apart = 0;
  Program p = in_parts(whole, apart);
  EXPECT_THAT(verify(p), testing::IsEmpty());
  const std::vector<std::string> code = test::lines(p, ActorId(0));
  EXPECT_THAT(code, ElementsAre("start F0", "await F0", "F0 m0 [1, 2)")) << "the rest is one fused kernel";
  test::changed(p.actors[ActorId(0)],
                [](test::InstructionList& all) { std::swap(all[InstructionId(1)], all[InstructionId(2)]); });
  const std::vector<Fault> faults = verify(p);
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_THAT(faults[0].str(), HasSubstr("it touches what a collective still works on"));
  test::changed(p.actors[ActorId(0)], [](test::InstructionList& all) { all.pop_back(); });
  EXPECT_THAT(verify(p).back().str(), HasSubstr("nobody awaits it"));
  test::changed(p.actors[ActorId(0)], [](test::InstructionList& all) { all.pop_back(); });
  EXPECT_THAT(verify(p).front().str(), HasSubstr("F0 of microbatch 0 runs 1 of its 2 calls"));
}

}  // namespace
}  // namespace stretto

#include "stretto/plan/inner/short_program.h"

#include <algorithm>
#include <set>

#include "stretto/models/family.h"
#include "stretto/plan/inner/stage_model.h"
#include "stretto/program/memory/lifetimes.h"
#include "stretto/simulate/held.h"
#include "stretto/simulate/prices.h"
#include "stretto/step/cost.h"

namespace stretto {
namespace {

constexpr int stage_count = 6;
// What is read off each of them: nothing of the first and the last, whose surroundings are others.
constexpr MicrobatchId whole{1}, split{2};
constexpr int microbatches = 4;

Schedule every_kind() {
  Schedule s = looped({.actors = 1, .microbatches = microbatches, .chunks = stage_count});
  s.name = "facts";
  Row& row = s.rows[0];
  const auto forward = [&](int m) {
    for (int stage = 0; stage < stage_count; ++stage) row.F(stage, m);
  };
  const auto backward = [&](int m) {
    for (int stage = stage_count; stage-- > 0;) row.B(stage, m);
  };
  forward(0), backward(0), forward(1), backward(1), forward(2);
  for (int stage = stage_count; stage-- > 0;) row.I(stage, 2);
  for (int stage = 0; stage < stage_count; ++stage) row.F(stage, 3).W(stage, 2);
  backward(3);
  return s;
}

Compiled compile_short(const PlanProblem& p, const Variant& v) {
  const RunKeys keys{.data = v.data,
                     .tensor = v.tensor,
                     .context = v.context,
                     .expert = v.expert,
                     .sequence = v.sequence,
                     .zero = v.zero,
                     .microbatches = microbatches,
                     .recompute = v.recompute};
  const ModelConfig model = shortened(p.model, 4);
  const int period = static_cast<int>(model.layers / 2);  // pieces of one
  Parallel parallel = parallel_of(p, keys);
  parallel.schedule = every_kind();
  parallel.chunks = stage_count;
  parallel.purpose = Purpose::facts;
  parallel.overlap = Overlap::none;
  parallel.stages = {1, 1, period - 1, period, 2 * period, static_cast<int>(model.head_parts)};
  return compile(make_model(model, v.rows * v.data * v.expert * microbatches), p.optimizer, training_of(p, keys),
                 parallel);
}

// What a step of a whole pipeline has at its end is not in facts of stages.
Cluster without_ends(Cluster c) {
  c.stack.free_update = false;
  c.stack.step = 0;
  return c;
}

bool remakes(Part p) { return p == Part::I || p == Part::R; }

// In every microbatch, not once a step.
bool scattered_each_time(const Task& t) { return t.part == Part::S && !std::holds_alternative<ParamId>(t.about); }

}  // namespace

ShortProgram::ShortProgram(const PlanProblem& p, const Variant& v)
    : compiled_(compile_short(p, v)),
      head_parts_(static_cast<int>(p.model.head_parts)),
      stages_(stage_count),
      pieces_(program().step->pieces) {
  const Cluster cluster = without_ends(p.cluster.cluster);
  read_ends(play_step(program(), cluster));
  Prices prices(program(), cluster);
  read_tasks(prices);
  read_times(p, prices);
  if (v.recompute != Recompute::none) read_made_again(prices);
  read_pieces();
  read_kept();
  read_beside();
  read_stack(p.cluster.cluster);
}

// What a step has before its first microbatch and after its last one.
void ShortProgram::read_ends(const PlayedStep& played) {
  double last = 0;
  std::optional<double> first;
  for (const Span& s : played.timeline.spans) {
    if (s.lane != Lane::compute || !s.action) continue;
    if (!first) first = s.start;
    last = std::max(last, s.end);
  }
  before_ = first.value_or(0);
  double tail = std::max(0.0, played.time.seconds - last), elements = 0;
  const auto& tasks = program().step->tasks;
  const bool each_time = std::any_of(tasks.begin(), tasks.end(), scattered_each_time);
  if (!each_time) tail -= std::min(tail, played.time.exposed);  // all of it after the last microbatch
  for (const Accumulator& x : program().step->accumulators) elements += program().step->elements(x.type);
  for (const Accumulator& x : program().step->accumulators) {
    const double share = elements > 0 ? program().step->elements(x.type) / elements : 0;
    stages_[program().stage_of[x.piece]].update += share * tail;
  }
}

// In place no task takes less than its software needs to issue it. Arranged, a turn takes what the compiler's order of
// its calls does.
void ShortProgram::read_times(const PlanProblem& p, Prices& prices) {
  for (const Task& t : program().step->tasks) {
    if (!t.piece) continue;
    PieceFacts& f = stages_[program().stage_of[*t.piece]];
    if (t.part == Part::F) f.F += prices.issue(t.part);
    if (remakes(t.part)) f.I += prices.issue(t.part);
    if (t.part == Part::W) f.B += prices.issue(t.part);
  }
  for (PieceFacts& f : stages_) {
    f.B = std::max(f.placed_I + f.placed_W, f.I + f.B);
    f.F = std::max(f.placed_F, f.F), f.I = std::max(f.placed_I, f.I);
  }
  if (p.parallel.overlap != Overlap::none) read_turns(prices);
}

// The compiler's own regions, ordered as it orders them when nothing is waited for.
void ShortProgram::read_turns(Prices& prices) {
  const ActorId actor(0);
  const StartedRuns started = started_runs(program().actors[actor]);
  CallFacts call_facts(program().mesh);
  for (const TurnSpan turns : regions_of(program(), actor)) {
    const std::vector<Instruction> region = written_out(program().actors[actor].code, turns);
    const Action* const a = action_of(region);
    if (!a || a->microbatch != (a->phase == Phase::I ? split : whole)) continue;
    RegionWork all = work_of(program(), region, started, call_facts, true);
    for (WorkId w : all.work.ids()) all.work[w].seconds = seconds_of(all.origins[w], region, prices);
    PieceFacts& f = stages_[a->stage];
    (a->phase == Phase::F ? f.F : a->phase == Phase::I ? f.I : f.B) = interleave(all.work).seconds;
  }
}

// Of the region's first run that has one.
const Action* ShortProgram::action_of(Region region) const {
  for (const Instruction& i : region)
    if (const stretto::Run* r = run_of(i); r && r->action) return &program().action(ActorId(0), *r->action);
  return nullptr;
}

// Facts have gathers, scatters and what is added up of these apart.
double ShortProgram::seconds_of(const Origin& o, Region region, Prices& prices) const {
  const stretto::Run* r = run_of(region[o.at.value]);
  if (!r || !o.call || program().task(*r).part == Part::A) return 0;
  const ActorId actor(0);
  const stretto::Run call{.task = r->task, .calls = CallRange{*o.call, CallId(o.call->value + 1)}};
  const Calls& body = *program().calls[r->task];
  const bool collective = body.graph.node(body.calls[*o.call].node).op->collective != nullptr;
  return collective ? prices.started(actor, call).front().seconds : prices.part(actor, call).seconds();
}

// What tasks take where they stand; and of parameters and gradients what goes on beside them, in every microbatch or
// once a step.
void ShortProgram::read_tasks(Prices& prices) {
  const Program& p = program();
  const ActorId actor(0);
  IdVector<PieceId, double> whole(p.step->pieces), back(p.step->pieces);
  for (TaskId t : p.step->tasks.ids()) {
    const Task& task = p.step->tasks[t];
    const auto takes = [&] {
      double seconds = 0;
      for (const Prices::Started& s : prices.started(actor, {.task = t})) seconds += s.seconds;
      return seconds;
    };
    if (task.part == Part::sum) {
      stages_[p.step->buckets[std::get<BucketId>(task.about)].stage].sums += takes();
      continue;
    }
    if (!task.piece) continue;
    PieceFacts& f = stages_[p.stage_of[*task.piece]];
    if (of_an_action(task.part)) {
      const Priced price = prices.task(actor, t);
      (task.part == Part::F ? f.placed_F : task.part == Part::W ? f.placed_W : f.placed_I) += price.seconds();
      f.products += price.products, f.attention += price.attention, f.elements += price.elements;
    }
    if (task.part == Part::S) (scattered_each_time(task) ? f.scatter : f.sums) += takes();
    if (task.part == Part::A) f.add += prices.task(actor, t).seconds();
    if (task.part == Part::U) (std::get<Gathered>(task.about) == Gathered::whole ? whole : back)[*task.piece] = takes();
  }
  for (PieceId piece : whole.ids()) {
    PieceFacts& f = stages_[p.stage_of[piece]];
    f.gather += whole[piece];
    f.gather_back += back[piece] > 0 ? back[piece] : whole[piece];  // backward may read all that forward does
  }
}

// The recompute of a backward before its first task that needs a gradient.
void ShortProgram::read_made_again(Prices& prices) {
  const ActorId actor(0);
  IdVector<StageId, char> begun(stage_count, 0);
  for (const Instruction& i : program().actors[actor].code) {
    const stretto::Run* r = run_of(i);
    if (!r || !r->action) continue;
    const Action& a = program().action(actor, *r->action);
    if (a.microbatch != whole || a.phase != Phase::B || begun[a.stage]) continue;
    if (program().task(*r).part == Part::R)
      stages_[a.stage].R += (r->calls ? prices.part(actor, *r) : prices.task(actor, r->task)).seconds();
    else
      begun[a.stage] = 1;
  }
}

void ShortProgram::read_pieces() {
  const Program& p = program();
  const Step& s = *p.step;
  for (std::size_t i = 0; i < pieces_.size(); ++i) pieces_[i].attention = i % 2 == 1;
  IdVector<ParamId, char> seen(s.params.size(), 0);
  for (const Task& t : s.tasks) {
    if (t.part != Part::F && t.part != Part::U) continue;
    PieceOfShort& x = pieces_[t.piece->value];
    for (const Binding& b : t.inputs)
      if (const ParamId* param = as<ParamId>(b); param && !seen[*param]) {
        seen[*param] = 1;
        x.params += s.bytes(s.params[*param]);
      }
  }
  std::set<ParamId> with_state;
  std::vector<StateId> written;
  for (const Task& t : s.tasks)
    for (const Binding& b : t.outputs)
      if (const StateId* state = as<StateId>(b)) written.push_back(*state);
  for (const Accumulator& a : s.accumulators) {
    PieceOfShort& x = pieces_[a.piece.value];
    x.gradients += s.bytes(a.type);
    if (!with_state.insert(a.param).second) continue;
    for (const StateId& state : written)
      if (state.param == a.param) x.state += s.state_bytes(state);
  }
}

// What lives between the actions of a microbatch, at the stage that reads it last.
void ShortProgram::read_kept() {
  const Program& p = program();
  for (const CrossValue& v : p.step->values) {
    const Task& from = p.step->tasks[v.producer];
    IdVector<StageId, char> by_i(stage_count, 0), by_w(stage_count, 0);
    for (TaskId c : v.consumers) {
      const Task& to = p.step->tasks[c];
      if (remakes(to.part)) by_i[p.stage_of[*to.piece]] = 1;
      if (to.part == Part::W) by_w[p.stage_of[*to.piece]] = 1;
    }
    for (StageId s : stages_.ids()) {
      if (from.part == Part::F && (by_i[s] || by_w[s])) (by_w[s] ? stages_[s].kept_w : stages_[s].kept_i) += v.bytes;
      if (remakes(from.part) && by_w[s]) stages_[s].for_w += v.bytes;
    }
  }
}

// Of the actions that are looked at, the most that is alive beyond what others keep.
void ShortProgram::read_beside() {
  const Program& p = program();
  const Row& row = p.row(ActorId(0));
  IdVector<ActionId, double> kept;
  double now = 0;
  for (const Action& a : row) {
    const PieceFacts& x = stages_[a.stage];
    if (a.phase == Phase::F) now += x.kept();
    kept.push_back(now);
    now += kept_after(a.phase, x) - (a.phase == Phase::F ? x.kept() : 0);
  }
  const Lifetimes lives = lifetimes(p, ActorId(0));
  std::vector<double> change(lives.clock.back() + 2);
  for (const LiveBuffer& b : lives.buffers) {
    change[b.first] += b.bytes;
    change[b.last + 1] -= b.bytes;
  }
  const auto& code = p.actors[ActorId(0)].code;
  double live = 0;
  i64 at = 0;
  for (InstructionId i : code.ids()) {
    const Instruction x = code[i];
    const stretto::Run* r = run_of(x);
    const Action* a = r && r->action ? &p.action(ActorId(0), *r->action) : nullptr;
    double* most = nullptr;
    if (a && a->microbatch == whole && a->phase == Phase::B) most = &stages_[a->stage].beside;
    if (a && a->microbatch == split && a->phase == Phase::I) most = &stages_[a->stage].beside_i;
    if (a && a->microbatch == split && a->phase == Phase::W) most = &stages_[a->stage].beside_w;
    for (const i64 end = lives.clock[InstructionId(i.value + 1)]; at < end; ++at) {
      live += change[at];
      if (most) *most = std::max(*most, live - kept[*r->action]);
    }
  }
}

PieceOfShort ShortProgram::all_of_head() const {
  PieceOfShort sum;
  for (auto x = pieces_.end() - head_parts_; x != pieces_.end(); ++x)
    sum.params += x->params, sum.gradients += x->gradients, sum.state += x->state;
  return sum;
}

double ShortProgram::message() const {
  const std::vector<Crossing> all = crossings(*program().step);
  return all[all.size() / 2].forward;
}

double ShortProgram::tied() const {
  const Step& s = *program().step;
  std::set<ParamId> first;
  double bytes = 0;
  for (const Task& t : s.tasks) {
    if (t.part != Part::F && t.part != Part::U) continue;
    for (const Binding& b : t.inputs)
      if (const ParamId* id = as<ParamId>(b)) {
        if (t.piece->value == 0) first.insert(*id);
        if (t.piece->value + head_parts_ >= s.pieces && first.contains(*id)) bytes += s.bytes(s.params[*id]);
      }
  }
  return bytes;
}

// What the software of the cluster holds beside what the program plans.
void ShortProgram::read_stack(const Cluster& c) {
  const Program& p = program();
  std::size_t most = 0;
  for (const auto& calls : p.calls) most = std::max(most, calls->scratch);
  scratch_ = workspace(c, double(most));
  for (TaskId t : p.step->tasks.ids())
    if (const Task& task = p.step->tasks[t]; task.part == Part::F)
      stages_[p.stage_of[*task.piece]].kept_i += kept_beside(p, t, c.stack);
  read_kept_by_stack(c.stack);
}

// Of the stage of two periods those pieces that have a neighbour on each side.
void ShortProgram::read_kept_by_stack(const Stack& stack) {
  const Program& p = program();
  IdVector<PieceId, PieceKept> each(p.step->pieces);
  for (TaskId t : p.step->tasks.ids())
    if (const Task& task = p.step->tasks[t]; task.part == Part::F)
      each[*task.piece] = {kept_beside(p, t, stack), kept_products(p, t)};
  const int before_head = p.step->pieces - head_parts_, period = (before_head - 1) / 4;
  KeptOfPieces kept{.embedding = each[PieceId(0)], .logits = logits_of(p)};
  for (int i = 0; i < period; ++i) kept.period.push_back(each[PieceId(2 * period + 1 + (i > 0 ? i : period))]);
  for (int i = 0; i < head_parts_; ++i) kept.head.push_back(each[PieceId(before_head + i)]);
  kept_ = std::make_shared<const KeptOfPieces>(std::move(kept));
}

}  // namespace stretto

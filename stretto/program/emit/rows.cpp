#include "stretto/program/emit/rows.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

namespace stretto {
namespace {

// One way through a stage's pieces: the parts of each, in this order.
struct Pass {
  bool ascending = true;
  std::vector<Part> parts;
};
using Passes = std::vector<Pass>;

// What an action runs. An alternating B has the W of each piece right after its I, so that sums of its gradients start
// as early as possible, or so that what was recomputed for the piece can be dropped early.
const Passes& passes_of(Phase phase, bool alternating) {
  static const std::map<std::pair<Phase, bool>, Passes> table = {
      {{Phase::F, false}, {{true, {Part::F}}}},
      {{Phase::R, false}, {{true, {Part::R}}}},
      {{Phase::I, false}, {{false, {Part::I}}}},
      {{Phase::W, false}, {{false, {Part::W}}}},
      {{Phase::B, false}, {{false, {Part::I}}, {false, {Part::W}}}},
      {{Phase::B, true}, {{false, {Part::I, Part::W}}}},
  };
  return table.at({phase, alternating && phase == Phase::B});
}

// Where the row has no R of its own, I brings one along: as late as possible, piece by piece, unless the R of one piece
// reads what the R of another makes.
Passes with_recompute(Passes passes, bool chained) {
  Pass& first = passes.front();
  if (first.parts.front() != Part::I) return passes;
  if (chained)
    passes.insert(passes.begin(), {true, {Part::R}});
  else
    first.parts.insert(first.parts.begin(), Part::R);
  return passes;
}

// The position in the row of the last action that makes gradients of a stage's weights.
using LastOfStage = IdVector<StageId, std::optional<ActionId>>;

class RowEmitter {
 public:
  RowEmitter(Emitter& e, ActorId actor)
      : e_(e), p_(e.program), s_(e.step), actor_(actor), row_(p_.row(actor)), pieces_(p_.schedule.stages) {
    for (PieceId piece : p_.stage_of.ids()) pieces_[p_.stage_of[piece]].push_back(piece);
    find_chained();
    for (const Action& a : row_)
      if (a.phase == Phase::R) recomputed_.insert({a.stage, a.microbatch});
    find_last();
  }

  void run() {
    const bool marked = p_.schedule.marked(actor_, StorageMark::Kind::reduce_grad);
    if (marked) find_marked();
    for (ActionId i(0); i.value < row_.size();) {
      start_marked(i);
      const std::size_t from = code().size();
      const ActionId next = weights_until(i);
      if (next > i)
        weights_by_piece(i, next);
      else
        action(row_[i.value], i);
      const ActionId end = std::max(next, ActionId(i.value + 1));
      for (ActionId k = i; k < end; k = ActionId(k.value + 1))
        if (const StageId stage = row_[k.value].stage; last_[stage] == k && !marked) {
          settle(k);  // what is summed over other axes must have arrived
          start_sums(stage, from);
        }
      i = end;
    }
    const std::optional<ActionId> last = row_.empty() ? std::nullopt : std::optional(ActionId(row_.size() - 1));
    settle(last);
    for (const auto& [position, stage] : marked_) start_sums(stage, code().size());
  }

 private:
  IdVector<InstructionId, Instruction>& code() { return p_.actors[actor_].code; }

  void action(const Action& a, ActionId position) {
    const StageId stage = a.stage;
    const MicrobatchId m = a.microbatch;
    const bool alternating = (last_[stage] == position && !gives_to_others(a)) || by_layer(stage);
    Passes passes = passes_of(a.phase, alternating);
    if (!recomputed_.contains({stage, m})) passes = with_recompute(std::move(passes), chained_.contains(stage));
    for (const Pass& pass : passes) {
      std::vector<PieceId> order = pieces_[stage];
      if (!pass.ascending) std::reverse(order.begin(), order.end());
      for (PieceId piece : order)
        for (Part part : pass.parts) run_part(part, piece, m, position);
    }
  }

  // Is what a piece recomputes dropped before the next piece recomputes? Then its W comes right after its I.
  bool by_layer(StageId stage) const {
    return !s_.recompute.empty() && s_.recompute[pieces_[stage].front()] == Recompute::layer;
  }

  void run_part(Part part, PieceId piece, MicrobatchId m, ActionId position) {
    const std::optional<TaskId> task = e_.index.at(part, piece);
    if (!task) return;
    e_.run(actor_, *task, m, position);
    if (part == Part::W && e_.index.at(Part::S, piece))
      scatter(piece, m, position);
    else if (part == Part::W)
      carry(piece, m, position);
  }

  // Sums over equally many gradients are added up, as a binary counter carries; after the last one, all that are left.
  void carry(PieceId piece, MicrobatchId m, std::optional<ActionId> position) {
    if (s_.levels == 0) return;
    const bool last = m.value + 1 == p_.pipe_of.size();
    int level = std::popcount(m.value);
    for (int k = last ? level : std::countr_one(m.value); k > 0; --k, --level)
      if (const auto it = e_.index.carries.find({piece, Level(level)}); it != e_.index.carries.end())
        e_.run(actor_, it->second, m, position);
  }

  // Whole gradients of a piece are sent off to be reduced, and accumulated after the next weight gradients are made:
  // so the whole gradients of two pieces exist at a time.
  struct OnItsWay {
    CollectiveId collective;
    TaskId scatter;
    PieceId piece;
    MicrobatchId microbatch;
  };
  void scatter(PieceId piece, MicrobatchId m, ActionId position) {
    settle(position);
    const TaskId task = *e_.index.at(Part::S, piece);
    on_its_way_ = OnItsWay{e_.start(actor_, task, m, position), task, piece, m};
  }
  void settle(std::optional<ActionId> position) {
    const std::optional<OnItsWay> x = std::exchange(on_its_way_, std::nullopt);
    if (!x) return;
    e_.await(actor_, x->collective, x->scatter);
    e_.run(actor_, *e_.index.at(Part::A, x->piece), x->microbatch, position);
    carry(x->piece, x->microbatch, position);
  }

  // Does another actor wait for what the action makes?
  bool gives_to_others(const Action& a) const {
    return std::any_of(s_.values.begin(), s_.values.end(), [&](const CrossValue& v) {
      const Task& t = s_.tasks[v.producer];
      if (t.part != Part::I || p_.stage_of[*t.piece] != a.stage) return false;
      return std::any_of(v.consumers.begin(), v.consumers.end(),
                         [&](TaskId c) { return e_.actor_of(c, a.microbatch) != actor_; });
    });
  }

  // The end of a run of W actions in which some stage's gradients become complete; `from` when there is none.
  ActionId weights_until(ActionId from) const {
    bool completes = false;
    ActionId end = from;
    for (; end.value < row_.size() && row_[end.value].phase == Phase::W; end = ActionId(end.value + 1))
      completes = completes || last_[row_[end.value].stage] == end;
    return completes ? end : from;
  }
  // Piece by piece instead of microbatch by microbatch: the sums of the first pieces start while others are made.
  // Nobody waits for weight gradients, and each accumulator sees the microbatches in the row's order.
  void weights_by_piece(ActionId from, ActionId to) {
    for (std::size_t piece = p_.stage_of.size(); piece-- > 0;)
      for (ActionId k = from; k < to; k = ActionId(k.value + 1))
        if (p_.stage_of[PieceId(piece)] == row_[k.value].stage)
          run_part(Part::W, PieceId(piece), row_[k.value].microbatch, k);
  }

  // Inserts the sums of a stage into its last action, whose code begins at `from`: each right after the last task that
  // adds to it.
  void start_sums(StageId stage, std::size_t from) {
    std::vector<std::pair<std::size_t, TaskId>> starts;  // position in the code, task
    for (BucketId b : s_.buckets.ids()) {
      const GradientBucket& bucket = s_.buckets[b];
      if (bucket.actor != actor_ || bucket.stage != stage) continue;
      std::set<PieceId> pieces;
      for (AccumulatorId g : bucket.accumulators) pieces.insert(s_.accumulators[g].piece);
      starts.push_back({after_last_addition(pieces, from), e_.index.sum_of[b]});
    }
    for (TaskId t : e_.index.scatters) {
      const PieceId piece = *s_.tasks[t].piece;
      if (p_.actor_of(piece) == actor_ && p_.stage_of[piece] == stage)
        starts.push_back({after_last_addition({piece}, from), t});
    }
    if (starts.empty()) return;
    std::stable_sort(starts.begin(), starts.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
    const std::vector<Instruction> tail(code().begin() + static_cast<std::ptrdiff_t>(starts.front().first),
                                        code().end());
    code().resize(code().size() - tail.size());
    std::size_t at = starts.front().first;
    auto next = starts.begin();
    const auto start_here = [&] {
      for (; next != starts.end() && next->first == at; ++next) e_.start(actor_, next->second);
    };
    for (const Instruction& i : tail) {
      start_here();
      code().push_back(i);
      ++at;
    }
    start_here();
  }
  std::size_t after_last_addition(const std::set<PieceId>& pieces, std::size_t from) {
    for (std::size_t at = code().size(); at > from; --at) {
      const Run* r = run_of(code()[InstructionId(at - 1)]);
      if (r && adds_to_gradients(p_.task(*r).part) && pieces.contains(*p_.task(*r).piece)) return at;
    }
    return code().size();
  }

  // The schedule itself says before which action the sums of a stage start. A stage without a mark, or with one that
  // would be too early, has them after its last action.
  void find_marked() {
    IdVector<StageId, ActionId> at(last_.size(), ActionId(0));
    for (const StorageMark& m : p_.schedule.marks[actor_])
      if (m.kind == StorageMark::Kind::reduce_grad && at.has(m.stage)) at[m.stage] = m.before;
    for (StageId stage : last_.ids())
      if (last_[stage]) marked_.insert({std::max(at[stage], ActionId(last_[stage]->value + 1)), stage});
  }
  void start_marked(ActionId position) {
    for (; !marked_.empty() && marked_.begin()->first <= position; marked_.erase(marked_.begin())) {
      settle(ActionId(position.value - 1));
      start_sums(marked_.begin()->second, code().size());
    }
  }

  // Stages in which the R of one piece reads what the R of another makes.
  void find_chained() {
    for (const CrossValue& v : s_.values)
      for (TaskId c : v.consumers)
        if (s_.tasks[v.producer].part == Part::R && s_.tasks[c].part == Part::R)
          chained_.insert(p_.stage_of[*s_.tasks[c].piece]);
  }
  // Only for stages with sums on this actor.
  void find_last() {
    last_.assign(pieces_.size(), std::nullopt);
    std::set<StageId> summed;
    for (const GradientBucket& b : s_.buckets)
      if (b.actor == actor_) summed.insert(b.stage);
    for (TaskId t : e_.index.scatters)
      if (p_.actor_of(*s_.tasks[t].piece) == actor_) summed.insert(p_.stage_of[*s_.tasks[t].piece]);
    for (std::size_t i = 0; i < row_.size(); ++i)
      if ((row_[i].phase == Phase::B || row_[i].phase == Phase::W) && summed.contains(row_[i].stage))
        last_[row_[i].stage] = ActionId(i);
  }

  Emitter& e_;
  Program& p_;
  const Step& s_;
  const ActorId actor_;
  const Row& row_;
  IdVector<StageId, std::vector<PieceId>> pieces_;
  std::set<StageId> chained_;
  std::set<std::pair<StageId, MicrobatchId>> recomputed_;  // with an R of their own
  LastOfStage last_;
  std::multimap<ActionId, StageId> marked_;  // sums that are still to start, by where the schedule wants them
  std::optional<OnItsWay> on_its_way_;
};

}  // namespace

void emit_prologue(Emitter& e, ActorId a) {
  for (MicrobatchId m : e.program.pipe_of.ids())
    for (TaskId t : e.index.counts) e.run(a, t, m);
  for (const auto* tasks : {&e.index.count_totals, &e.index.scales})
    for (TaskId t : *tasks) e.run(a, t);
}

void emit_row(Emitter& e, ActorId a) { RowEmitter(e, a).run(); }

void emit_totals(Emitter& e, ActorId a) {
  const auto here = [&](PieceId piece) {
    for (PipeId pipe : ids_until<PipeId>(e.program.schedule.actor_of.size()))
      if (e.program.actor_of(piece, pipe) == a) return true;
    return false;
  };
  for (TaskId t : e.index.totals)
    if (here(*e.step.tasks[t].piece)) e.run(a, t);
}

}  // namespace stretto

#include "stretto/program/emit/rows.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <tuple>

#include "stretto/program/emit/known_turns.h"
#include "stretto/program/overlap/region.h"

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
      : e_(e),
        p_(e.program),
        s_(e.step),
        actor_(actor),
        row_(p_.row(actor)),
        marked_row_(p_.schedule.marked(actor, StorageMark::Kind::reduce_grad)),
        pieces_(p_.schedule.stages),
        known_(e, actor) {
    for (auto& of_stage : pieces_) of_stage.resize(s_.segments);
    for (PieceId piece : p_.stage_of.ids()) pieces_[p_.stage_of[piece]][s_.segment_of(piece)].push_back(piece);
    find_chained();
    for (const Action& a : row_)
      if (a.phase == Phase::R) recomputed_.insert({a.stage, a.microbatch, a.segment});
    find_last();
    if (marked_row_) find_marked();
  }

  std::size_t run() {
    Code& code = p_.actors[actor_].code;
    code.close();
    for (ActionId i(0); i.value < row_.size();) {
      const ActionId end = turn_end(row_, i);
      turn(i, end);
      i = end;
    }
    const std::size_t turns = code.turns().size();
    for (const Instruction& i : left_.starts) code.push_back(i);
    const std::optional<ActionId> last = row_.empty() ? std::nullopt : std::optional(ActionId(row_.size() - 1));
    settle(last);
    for (const auto& [position, stage] : marked_)
      for (const auto& [at, task] : sums_of(stage, {})) e_.start(actor_, task);
    return turns;
  }

 private:
  void turn(ActionId from, ActionId end) {
    Standing now{.from = from, .begun = p_.actors[actor_].collectives};
    const TurnKey key = key_of(from, end, now);
    if (!known_.repeat(key, now, left_)) {
      write_out(key, from, end);
      known_.add(key, now, code_, left_);
    }
  }

  TurnKey key_of(ActionId from, ActionId end, Standing& now) {
    TurnKey key;
    for (const Instruction& i : left_.starts) {
      const Start& s = *start_of(i);
      LeftKey x{.task = s.run.task, .microbatch = now.number(s.run.microbatch)};
      if (s.run.action) x.action = now.distance(*s.run.action);
      key.starts.push_back(x);
      now.left.push_back(s.collective);
    }
    if (left_.settles) {
      const MicrobatchId m = left_.settles->microbatch;
      key.settles = LeftKey{.task = left_.settles->scatter,
                            .microbatch = now.number(m),
                            .first = e_.is_first(actor_, *e_.index.at(Part::A, left_.settles->piece), m)};
      now.left.push_back(left_.settles->collective);
    }
    for (ActionId i = from; i < end; i = after(i)) key.actions.push_back(key_of(i, now));
    for (ActionId i = from; i < end; i = std::max(weights_until(i), after(i)))
      for (; !marked_.empty() && marked_.begin()->first <= i; marked_.erase(marked_.begin()))
        key.actions[i.value - from.value].sums_before.push_back(marked_.begin()->second);
    const auto sums = [](const ActionKey& a) { return a.completes || !a.sums_before.empty(); };
    if (std::any_of(key.actions.begin(), key.actions.end(), sums)) key.sums = now.number(MicrobatchId(0));
    for (MicrobatchId m : now.microbatches) key.microbatches.push_back(key_of(m));
    return key;
  }
  ActionKey key_of(ActionId i, Standing& now) const {
    const Action& a = row_[i.value];
    const MicrobatchId m = a.microbatch;
    ActionKey key{.phase = a.phase,
                  .stage = a.stage,
                  .segment = a.segment,
                  .microbatch = now.number(m),
                  .recomputes = !has_own_recompute(a),
                  .completes = last_[a.stage] == i};
    for (const Pass& pass : passes_for(a, i))
      for (Part part : pass.parts)
        for (PieceId piece : pieces_of(a)) {
          const std::optional<TaskId> task = e_.index.at(part, piece);
          if (!task) continue;
          key.first.push_back(e_.is_first(actor_, *task, m));
          if (const auto add = e_.index.at(Part::A, piece); add && part == Part::W)
            key.first.push_back(e_.is_first(actor_, *add, m));
          for (const Binding& b : s_.tasks[*task].inputs)
            if (const ValueId* v = as<ValueId>(b); v && e_.actor_of(s_.values[*v].producer, m) != actor_)
              if (!e_.has_received(actor_, *v, m)) key.receives.push_back(*v);
        }
    return key;
  }
  // Which accumulators its gradients are added to.
  MicrobatchKey key_of(MicrobatchId m) const {
    MicrobatchKey key{.pipe = p_.pipe_of[m]};
    if (s_.levels > 0) key.level = std::popcount(m.value), key.carries = carries_of(m);
    return key;
  }

  void write_out(const TurnKey& key, ActionId from, ActionId end) {
    code_ = std::exchange(left_.starts, {});
    e_.write_to(&code_);
    write(key, from, end);
    e_.write_to(nullptr);
    // What only starts or waits belongs to the run that comes next (region.h).
    const auto last = std::find_if(code_.rbegin(), code_.rend(), [](const Instruction& i) { return ends_turn(i); });
    left_.starts.assign(last.base(), code_.end());
    code_.erase(last.base(), code_.end());
  }
  void write(const TurnKey& key, ActionId begin, ActionId end) {
    for (ActionId i = begin; i < end;) {
      for (StageId stage : key.actions[i.value - begin.value].sums_before) {
        settle(ActionId(i.value - 1));
        start_sums(stage, code_.size());
      }
      const std::size_t from = code_.size();
      const ActionId next = weights_until(i);
      if (next > i)
        weights_by_piece(i, next);
      else
        action(row_[i.value], i);
      const ActionId done = std::max(next, after(i));
      for (ActionId k = i; k < done; k = after(k))
        if (const StageId stage = row_[k.value].stage; last_[stage] == k && !marked_row_) {
          settle(k);  // what is summed over other axes must have arrived
          start_sums(stage, from);
        }
      i = done;
    }
  }
  static ActionId after(ActionId i) { return ActionId(i.value + 1); }

  Passes passes_for(const Action& a, ActionId position) const {
    const StageId stage = a.stage;
    const bool alternating = (last_[stage] == position && !gives_to_others(a)) || by_layer(stage);
    Passes passes = passes_of(a.phase, alternating);
    if (!has_own_recompute(a)) passes = with_recompute(std::move(passes), chained_.contains(stage));
    return passes;
  }
  const std::vector<PieceId>& pieces_of(const Action& a) const { return pieces_[a.stage][a.segment]; }
  bool has_own_recompute(const Action& a) const { return recomputed_.contains({a.stage, a.microbatch, a.segment}); }
  void action(const Action& a, ActionId position) {
    for (const Pass& pass : passes_for(a, position)) {
      std::vector<PieceId> order = pieces_of(a);
      if (!pass.ascending) std::reverse(order.begin(), order.end());
      for (PieceId piece : order)
        for (Part part : pass.parts) run_part(part, piece, a.microbatch, position);
    }
  }

  // Is what a piece recomputes dropped before the next piece recomputes? Then its W comes right after its I.
  bool by_layer(StageId stage) const {
    return !s_.recompute.empty() && s_.recompute[pieces_[stage][0].front()] == Recompute::layer;
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
    int level = std::popcount(m.value);
    for (int k = carries_of(m); k > 0; --k, --level)
      if (const auto it = e_.index.carries.find({piece, Level(level)}); it != e_.index.carries.end())
        e_.run(actor_, it->second, m, position);
  }

  int carries_of(MicrobatchId m) const {
    const bool last = m.value + 1 == p_.pipe_of.size();
    return last ? std::popcount(m.value) : std::countr_one(m.value);
  }

  // Whole gradients of a piece are sent off to be reduced, and accumulated after the next weight gradients are made:
  // so the whole gradients of two pieces exist at a time.
  void scatter(PieceId piece, MicrobatchId m, ActionId position) {
    settle(position);
    const TaskId task = *e_.index.at(Part::S, piece);
    left_.settles = GradientsUnderWay{e_.start(actor_, task, m, position), task, piece, m};
  }
  void settle(std::optional<ActionId> position) {
    const std::optional<GradientsUnderWay> x = std::exchange(left_.settles, std::nullopt);
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
    const int n = s_.segments;
    for (int first = s_.pieces - n; first >= 0; first -= n)
      for (ActionId k = from; k < to; k = ActionId(k.value + 1))
        if (const Action& a = row_[k.value]; p_.stage_of[PieceId(first)] == a.stage)
          run_part(Part::W, PieceId(first + a.segment), a.microbatch, k);
  }

  // Inserts the sums of a stage into its last action, whose code begins at `from`: each right after the last task that
  // adds to it.
  void start_sums(StageId stage, std::size_t from) {
    const std::vector<std::pair<std::size_t, TaskId>> starts = sums_of(stage, from);
    if (starts.empty()) return;
    const std::vector<Instruction> tail(code_.begin() + std::ptrdiff_t(starts.front().first), code_.end());
    code_.resize(code_.size() - tail.size());
    std::size_t at = starts.front().first;
    auto next = starts.begin();
    const auto start_here = [&] {
      for (; next != starts.end() && next->first == at; ++next) e_.start(actor_, next->second);
    };
    for (const Instruction& i : tail) {
      start_here();
      code_.push_back(i);
      ++at;
    }
    start_here();
  }
  // Where they start, in order; none: at the end of the code.
  std::vector<std::pair<std::size_t, TaskId>> sums_of(StageId stage, std::optional<std::size_t> from) const {
    std::vector<std::pair<std::size_t, TaskId>> starts;
    const auto add = [&](const std::set<PieceId>& pieces, TaskId task) {
      starts.push_back({from ? after_last_addition(pieces, *from) : 0, task});
    };
    for (BucketId b : s_.buckets.ids()) {
      const GradientBucket& bucket = s_.buckets[b];
      if (bucket.actor != actor_ || bucket.stage != stage) continue;
      std::set<PieceId> pieces;
      for (AccumulatorId g : bucket.accumulators) pieces.insert(s_.accumulators[g].piece);
      add(pieces, e_.index.sum_of[b]);
    }
    for (TaskId t : e_.index.scatters) {
      const PieceId piece = *s_.tasks[t].piece;
      if (p_.actor_of(piece) == actor_ && p_.stage_of[piece] == stage) add({piece}, t);
    }
    std::stable_sort(starts.begin(), starts.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
    return starts;
  }
  std::size_t after_last_addition(const std::set<PieceId>& pieces, std::size_t from) const {
    for (std::size_t at = code_.size(); at > from; --at) {
      const Run* r = run_of(code_[at - 1]);
      if (r && adds_to_gradients(p_.task(*r).part) && pieces.contains(s_.first_segment(*p_.task(*r).piece))) return at;
    }
    return code_.size();
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
  const bool marked_row_;                                        // the schedule says when sums start
  IdVector<StageId, std::vector<std::vector<PieceId>>> pieces_;  // per segment
  std::set<StageId> chained_;
  std::set<std::tuple<StageId, MicrobatchId, std::uint16_t>> recomputed_;  // with an R of their own
  LastOfStage last_;
  std::multimap<ActionId, StageId> marked_;  // sums that are still to start, by where the schedule wants them
  std::vector<Instruction> code_;            // of the turn that is written out
  LeftOver left_;
  KnownTurns known_;
};

}  // namespace

void emit_prologue(Emitter& e, ActorId a) {
  for (MicrobatchId m : e.program.pipe_of.ids())
    for (TaskId t : e.index.counts) e.run(a, t, m);
  for (const auto* tasks : {&e.index.count_totals, &e.index.scales})
    for (TaskId t : *tasks) e.run(a, t);
}

std::size_t emit_row(Emitter& e, ActorId a) { return RowEmitter(e, a).run(); }

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

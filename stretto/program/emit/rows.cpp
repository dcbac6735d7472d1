#include "stretto/program/emit/rows.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

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
        pieces_(p_.schedule.stages) {
    for (PieceId piece : p_.stage_of.ids()) pieces_[p_.stage_of[piece]].push_back(piece);
    find_chained();
    for (const Action& a : row_)
      if (a.phase == Phase::R) recomputed_.insert({a.stage, a.microbatch});
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
    for (const Instruction& i : carried_) code.push_back(i);
    const std::optional<ActionId> last = row_.empty() ? std::nullopt : std::optional(ActionId(row_.size() - 1));
    settle(last);
    for (const auto& [position, stage] : marked_)
      for (const auto& [at, task] : sums_of(stage, {})) e_.start(actor_, task);
    return turns;
  }

 private:
  // A turn is written out the first time that its key comes; then only what its numbers stand for is found.
  struct Message {
    ValueId value;
    std::uint32_t microbatch = 0;  // of the key's
    ActorId target;
  };
  struct Begun {  // a collective: by the turn itself, or left to it
    bool here = true;
    std::uint32_t number = 0;
  };
  struct LeftStart {
    Run run;  // its microbatch is one of the key's
    std::optional<std::int64_t> action = {};
    Begun collective;
  };
  struct LeftSum {
    Begun collective;
    TaskId scatter;
    PieceId piece;
    std::uint32_t microbatch = 0;
  };
  struct Known {
    TurnCodeId code;
    std::vector<std::uint32_t> microbatches;  // of the key's
    std::vector<std::int64_t> actions;        // how far from the turn's first
    std::vector<Message> messages;
    std::vector<Begun> collectives;
    std::uint32_t begun = 0;  // collectives
    std::vector<LeftStart> starts;
    std::optional<LeftSum> settles = {};
  };
  // What the numbers of a key stand for.
  struct Standing {
    ActionId from;
    std::vector<MicrobatchId> microbatches = {};
    std::vector<CollectiveId> left = {};
    std::uint32_t begun = 0;  // collectives of the actor before the turn
    std::uint32_t number(MicrobatchId m) {
      const auto it = std::find(microbatches.begin(), microbatches.end(), m);
      if (it != microbatches.end()) return std::uint32_t(it - microbatches.begin());
      microbatches.push_back(m);
      return std::uint32_t(microbatches.size() - 1);
    }
    std::int64_t distance(ActionId a) const { return std::int64_t(a.value) - std::int64_t(from.value); }
    ActionId action(std::int64_t distance) const { return ActionId(std::int64_t(from.value) + distance); }
    CollectiveId collective(const Begun& b) const { return b.here ? CollectiveId(begun + b.number) : left[b.number]; }
    Begun begun_as(CollectiveId c) const {
      if (c.value >= begun) return {true, c.value - begun};
      return {false, std::uint32_t(std::find(left.begin(), left.end(), c) - left.begin())};
    }
  };

  void turn(ActionId from, ActionId end) {
    Standing now{.from = from, .begun = p_.actors[actor_].collectives};
    const RowTurnKey key = key_of(from, end, now);
    const auto known = known_.find(key);
    if (known != known_.end())
      repeat(known->second, now);
    else
      known_.emplace(key, written(key, end, now));
  }

  RowTurnKey key_of(ActionId from, ActionId end, Standing& now) {
    RowTurnKey key;
    for (const Instruction& i : carried_) {
      const Start& s = *start_of(i);
      LeftKey x{.task = s.run.task, .microbatch = now.number(s.run.microbatch)};
      if (s.run.action) x.action = now.distance(*s.run.action);
      key.starts.push_back(x);
      now.left.push_back(s.collective);
    }
    if (on_its_way_) {
      const MicrobatchId m = on_its_way_->microbatch;
      key.settles = LeftKey{.task = on_its_way_->scatter,
                            .microbatch = now.number(m),
                            .first = e_.is_first(actor_, *e_.index.at(Part::A, on_its_way_->piece), m)};
      now.left.push_back(on_its_way_->collective);
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
                  .microbatch = now.number(m),
                  .recomputes = !recomputed_.contains({a.stage, m}),
                  .completes = last_[a.stage] == i};
    for (const Pass& pass : passes_for(a, i))
      for (Part part : pass.parts)
        for (PieceId piece : pieces_[a.stage]) {
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

  Known written(const RowTurnKey& key, ActionId end, Standing& now) {
    code_ = std::exchange(carried_, {});
    e_.write_to(&code_);
    write(key, now.from, end);
    e_.write_to(nullptr);
    // What only starts or waits belongs to the run that comes next (region.h).
    const auto last = std::find_if(code_.rbegin(), code_.rend(), [](const Instruction& i) { return ends_turn(i); });
    carried_.assign(last.base(), code_.end());
    code_.erase(last.base(), code_.end());
    return place(now);
  }
  // Places a turn that was just written out, and notes how one like it is made.
  Known place(Standing& now) {
    auto [code, numbers] = numbered(code_);
    Known k;
    const std::size_t known = now.microbatches.size();
    for (MicrobatchId m : numbers.microbatches) k.microbatches.push_back(now.number(m));
    for (ActionId a : numbers.actions) k.actions.push_back(now.distance(a));
    for (TransferId t : numbers.transfers) {
      const SentValue& v = *p_.transfers[t].value();
      k.messages.push_back({v.value, now.number(v.microbatch), p_.routes[p_.transfers[t].route].target});
    }
    for (CollectiveId c : numbers.collectives) k.collectives.push_back(now.begun_as(c));
    k.begun = p_.actors[actor_].collectives - now.begun;
    for (const Instruction& i : carried_) {
      const Start& s = *start_of(i);
      LeftStart x{.run = s.run, .collective = now.begun_as(s.collective)};
      x.run.microbatch = MicrobatchId(now.number(s.run.microbatch));
      if (s.run.action) x.action = now.distance(*s.run.action);
      k.starts.push_back(x);
    }
    if (on_its_way_)
      k.settles = LeftSum{now.begun_as(on_its_way_->collective), on_its_way_->scatter, on_its_way_->piece,
                          now.number(on_its_way_->microbatch)};
    STRETTO_ASSERT(now.microbatches.size() == known, "a turn has other microbatches than its key");
    Code& all = p_.actors[actor_].code;
    k.code = all.add(std::move(code));
    all.add(k.code, numbers);
    return k;
  }
  void repeat(const Known& k, const Standing& now) {
    TurnNumbers numbers;
    for (std::uint32_t m : k.microbatches) numbers.microbatches.push_back(now.microbatches[m]);
    for (std::int64_t a : k.actions) numbers.actions.push_back(now.action(a));
    for (const Message& x : k.messages) {
      const MicrobatchId m = now.microbatches[x.microbatch];
      numbers.transfers.push_back(x.target == actor_ ? e_.receive(x.value, m, actor_) : e_.send(x.value, m, x.target));
    }
    for (const Begun& c : k.collectives) numbers.collectives.push_back(now.collective(c));
    p_.actors[actor_].collectives += k.begun;
    carried_.clear();
    for (const LeftStart& x : k.starts) {
      Start s{x.run, now.collective(x.collective)};
      s.run.microbatch = now.microbatches[x.run.microbatch.value];
      if (x.action) s.run.action = now.action(*x.action);
      carried_.push_back(s);
    }
    on_its_way_ = std::nullopt;
    if (const auto& x = k.settles)
      on_its_way_ = OnItsWay{now.collective(x->collective), x->scatter, x->piece, now.microbatches[x->microbatch]};
    p_.actors[actor_].code.add(k.code, numbers);
  }

  void write(const RowTurnKey& key, ActionId begin, ActionId end) {
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
    if (!recomputed_.contains({stage, a.microbatch}))
      passes = with_recompute(std::move(passes), chained_.contains(stage));
    return passes;
  }
  void action(const Action& a, ActionId position) {
    for (const Pass& pass : passes_for(a, position)) {
      std::vector<PieceId> order = pieces_[a.stage];
      if (!pass.ascending) std::reverse(order.begin(), order.end());
      for (PieceId piece : order)
        for (Part part : pass.parts) run_part(part, piece, a.microbatch, position);
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
      if (r && adds_to_gradients(p_.task(*r).part) && pieces.contains(*p_.task(*r).piece)) return at;
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
  const bool marked_row_;  // the schedule says when sums start
  IdVector<StageId, std::vector<PieceId>> pieces_;
  std::set<StageId> chained_;
  std::set<std::pair<StageId, MicrobatchId>> recomputed_;  // with an R of their own
  LastOfStage last_;
  std::multimap<ActionId, StageId> marked_;  // sums that are still to start, by where the schedule wants them
  std::optional<OnItsWay> on_its_way_;
  std::vector<Instruction> code_;     // of the turn that is written out
  std::vector<Instruction> carried_;  // collectives that start with the next turn
  std::map<RowTurnKey, Known> known_;
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

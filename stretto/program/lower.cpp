// Step and schedule -> instructions.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>
#include <set>
#include <unordered_set>

#include "stretto/fuse/fuse.h"
#include "stretto/program/buckets.h"
#include "stretto/program/gathers.h"
#include "stretto/program/memory.h"
#include "stretto/program/order.h"
#include "stretto/program/program.h"
#include "stretto/program/task_index.h"
#include "stretto/program/transfers.h"

namespace stretto {
namespace {

std::vector<std::shared_ptr<const Calls>> fuse_all(const Step& s) {
  std::map<std::pair<const Graph*, std::vector<ResultMemory>>, std::shared_ptr<const Calls>> known;
  std::vector<std::shared_ptr<const Calls>> all;
  for (const Task& t : s.tasks) {
    ResultMemories results;
    for (const Binding& b : t.outputs) {
      ResultMemory memory{.accumulate = b.place == Place::gradient && (t.part == Part::W || t.part == Part::A)};
      const auto same = std::find(t.inputs.begin(), t.inputs.end(), b);
      if (same != t.inputs.end()) memory.same_memory = ArgumentId(same - t.inputs.begin());
      results.push_back(memory);
    }
    auto& calls = known[{t.body.get(), results.list()}];
    if (!calls) calls = std::make_shared<const Calls>(fuse(*t.body, results));
    all.push_back(calls);
  }
  return all;
}

// Instructions of all actors, in rounds that every actor goes through in the same order: prologue, the schedule's rows,
// then gradients of shared parameters to their owners, norms, squared norms to everybody, updates, new values of shared
// parameters.
class Lowering {
 public:
  Lowering(Program& p, const LowerOptions& options) : p_(p), s_(*p.step), options_(options), index_(s_) {
    for (int piece = 0; piece < s_.pieces; ++piece) {
      const std::size_t stage = std::size_t(p.stage_of[std::size_t(piece)]);
      if (pieces_.size() <= stage) pieces_.resize(stage + 1);
      pieces_[stage].push_back(piece);
    }
    const int pipes = p.schedule.pipes();
    actor_of_task_.assign(std::size_t(pipes), std::vector<int>(s_.tasks.size(), everybody));
    for (int pipe = 0; pipe < pipes; ++pipe)
      for (std::uint32_t t = 0; t < s_.tasks.size(); ++t) {
        const Task& task = s_.tasks[t];
        int& actor = actor_of_task_[std::size_t(pipe)][t];
        if (task.part >= Part::U && task.part <= Part::carry) actor = p.actor_of(task.piece, pipe);
        if (task.part == Part::combine || task.part == Part::norm || task.part == Part::update)
          actor = task.subject < s_.params.size()
                      ? p.owner_of(task.subject)
                      : p.actor_of(task.piece, int(task.subject - s_.params.size()) % pipes);
      }
    chained_.assign(pieces_.size(), false);
    for (const CrossValue& v : s_.values)
      for (std::uint32_t c : v.consumers)
        if (s_.tasks[v.producer].part == Part::R && s_.tasks[c].part == Part::R)
          chained_[std::size_t(p.stage_of[s_.tasks[c].piece])] = true;
    for (const Row& row : p.schedule.rows)
      for (const Action& a : row)
        if (a.phase == Phase::R) recomputed_.insert({a.stage, a.microbatch});
    ran_.assign(p.actors.size(), std::vector<bool>(s_.tasks.size() * std::size_t(pipes), false));
    received_.resize(p.actors.size());
    behind_.resize(p.actors.size());
    started_.assign(p.actors.size(), 0);
    find_users();
    p_.buckets = buckets_of(p, options.bucket_bytes);
  }

  void run() {
    emit_all();
    for (int a = 0; a < int(p_.actors.size()); ++a) place_gathers(p_, a, options_.reshard);
    if (options_.remote) keep_sent(p_);
  }

 private:
  void emit_all() {
    const int actors = int(p_.actors.size());
    for (int a = 0; a < actors; ++a) {
      for (int m = 0; m < p_.microbatches; ++m)
        for (std::uint32_t t : index_.counts) emit(a, t, m, none);
      for (std::uint32_t t : index_.count_totals) emit(a, t, 0, none);
      for (std::uint32_t t : index_.scales) emit(a, t, 0, none);
      const Row& row = p_.schedule.rows[std::size_t(a)];
      const std::vector<std::uint32_t> last = last_backward(a, row);
      const bool marked = p_.schedule.marked(a, StorageMark::Kind::reduce_grad);
      std::multimap<std::uint32_t, int> sums;
      if (marked) sums = marked_sums(a, last);
      for (std::uint32_t i = 0, next = 0; i < row.size(); i = next) {
        start_marked(a, sums, i);
        const std::size_t from = p_.actors[std::size_t(a)].code.size();
        next = weights_until(row, last, i);
        if (next > i)
          weights_by_piece(a, row, i, next);
        else
          action(a, row[i], i, last[row[i].stage] == i && !gives_to_others(a, row[i])), ++next;
        for (std::uint32_t k = i; k < next; ++k)
          if (last[row[k].stage] == k && !marked) {
            settle(a, k);  // what is summed over other axes must be there
            start_sums(a, row[k].stage, from);
          }
      }
      settle(a, row.empty() ? none : std::uint32_t(row.size() - 1));
      start_marked(a, sums, ~0u);
      for (std::uint32_t t : index_.totals)
        for (int pipe = 0, done = false; pipe < p_.schedule.pipes() && !done; ++pipe)
          if (p_.actor_of(s_.tasks[t].piece, pipe) == a) emit(a, t, 0, none), done = true;
    }
    for (std::uint32_t g = 0; g < s_.accumulators.size(); ++g)
      if (s_.accumulators[g].level == 0)
        share(p_.actor_of(s_.accumulators[g].piece, s_.accumulators[g].pipe), p_.owner_of(s_.accumulators[g].param),
              {Place::gradient, g}, "gradient");
    for (std::uint32_t t : index_.step_scatters) done_.insert(s_.values[s_.tasks[t].outputs[0].index].consumers[0]);
    epilogue(Part::combine);
    for (int a = 0; a < actors; ++a) norms_of_sums(a);
    epilogue(Part::norm);
    for (int a = 0; a < actors; ++a)
      for (int b = 0; b < actors; ++b) squares(a, b);
    epilogue(Part::clip);
    epilogue(Part::update);
    for (std::uint32_t t : index_.epilogue) {
      if (s_.tasks[t].part != Part::update) continue;
      const std::uint32_t param = s_.tasks[t].subject;
      for (int a : users_[param]) share(p_.owner_of(param), a, {Place::param, param}, "parameter");
    }
  }

  static constexpr std::uint32_t none = ~0u;
  static constexpr int everybody = -1;

  // `alternating`: the W of each piece right behind its I, so that sums of its gradients start as early as they can.
  void action(int actor, const Action& a, std::uint32_t position, bool alternating) {
    const std::vector<int>& pieces = pieces_[a.stage];
    const int m = int(a.microbatch);
    const auto ascending = [&](Part part) {
      for (int piece : pieces) emit_if(actor, index_.at(part, piece), m, position);
    };
    const auto descending = [&](std::initializer_list<Part> parts) {
      for (auto it = pieces.rbegin(); it != pieces.rend(); ++it)
        for (Part part : parts) emit_if(actor, index_.at(part, *it), m, position);
    };
    if (a.phase == Phase::F) ascending(Part::F);
    if (a.phase == Phase::R) ascending(Part::R);
    if (a.phase == Phase::B || a.phase == Phase::I) {
      // Where the row has no R it is implied here: as late as possible, piece by piece, unless one R reads another's.
      const bool implied = !recomputed_.contains({a.stage, a.microbatch});
      if (implied && chained_[a.stage]) ascending(Part::R);
      if (a.phase == Phase::B && alternating) {
        if (implied && !chained_[a.stage])
          descending({Part::R, Part::I, Part::W});
        else
          descending({Part::I, Part::W});
        return;
      }
      if (implied && !chained_[a.stage])
        descending({Part::R, Part::I});
      else
        descending({Part::I});
    }
    if (a.phase == Phase::B || a.phase == Phase::W) descending({Part::W});
  }
  // Sums of equally many gradients are added, as a binary counter carries; behind the last one all that are left.
  void carry(int actor, int piece, std::uint32_t m, std::uint32_t position) {
    const bool last = int(m) + 1 == p_.microbatches;
    std::uint32_t level = std::uint32_t(std::popcount(m));
    for (int k = last ? int(level) : std::countr_one(m); k > 0; --k, --level)
      if (const auto it = index_.carries.find({piece, level}); it != index_.carries.end())
        emit(actor, it->second, int(m), position);
  }
  // Does another actor wait for what the action makes?
  bool gives_to_others(int actor, const Action& a) const {
    return std::any_of(s_.values.begin(), s_.values.end(), [&](const CrossValue& v) {
      const Task& t = s_.tasks[v.producer];
      if (t.part != Part::I || p_.stage_of[t.piece] != a.stage) return false;
      return std::any_of(v.consumers.begin(), v.consumers.end(),
                         [&](std::uint32_t c) { return actor_of(c, int(a.microbatch)) != actor; });
    });
  }
  // Weight gradients side by side in a row, in which a stage's gradients become complete: where they end, or `from`.
  std::uint32_t weights_until(const Row& row, const std::vector<std::uint32_t>& last, std::uint32_t from) const {
    bool completes = false;
    std::uint32_t end = from;
    for (; end < row.size() && row[end].phase == Phase::W; ++end) completes = completes || last[row[end].stage] == end;
    return completes ? end : from;
  }
  // Piece by piece instead of microbatch by microbatch: the sums of the first pieces start while others are made.
  // Nobody waits for weight gradients, and each accumulator sees the microbatches in the row's order.
  void weights_by_piece(int actor, const Row& row, std::uint32_t from, std::uint32_t to) {
    for (int piece = s_.pieces; piece-- > 0;)
      for (std::uint32_t k = from; k < to; ++k)
        if (p_.stage_of[std::size_t(piece)] == row[k].stage)
          emit_if(actor, index_.at(Part::W, piece), int(row[k].microbatch), k);
  }
  void emit_if(int actor, int task, int m, std::uint32_t position) {
    if (task >= 0) emit(actor, std::uint32_t(task), m, position);
  }

  // A run, behind the receives of what it needs from other actors, before the sends of what they need from it.
  void emit(int actor, std::uint32_t task, int m, std::uint32_t position) {
    auto& code = p_.actors[std::size_t(actor)].code;
    const Task& t = s_.tasks[task];
    for (const Binding& b : t.inputs) {
      if (b.place != Place::value || actor_of(s_.values[b.index].producer, m) == actor) continue;
      const u64 key = (u64(b.index) << 32) | std::uint32_t(m);
      if (received_[std::size_t(actor)].insert(key).second) code.push_back(Receive{value_transfer(b.index, m, actor)});
    }
    auto ran = ran_[std::size_t(actor)][task * std::size_t(p_.schedule.pipes()) + p_.pipe_of[std::size_t(m)]];
    code.push_back(
        Run{.task = task, .microbatch = std::uint32_t(m), .overwrite = !ran || s_.levels > 0, .action = position});
    ran = true;
    for (const Binding& b : t.outputs) {
      if (b.place != Place::value) continue;
      for (int target : targets_of(b.index, m))
        if (target != actor) code.push_back(Send{value_transfer(b.index, m, target)});
    }
    const bool scattered = index_.at(Part::S, t.piece) >= 0;
    if (s_.levels > 0 && t.part == (scattered ? Part::A : Part::W)) carry(actor, t.piece, std::uint32_t(m), position);
    if (t.part == Part::W && scattered) scatter(actor, t.piece, m, position);
  }

  // Whole gradients of a piece go on their way; they are added up behind the next weight gradients, so that two pieces'
  // are there at a time.
  struct Behind {
    std::uint32_t number = 0;
    int scatter = -1, add = -1, microbatch = 0;  // scatter: -1: nothing is on its way
  };
  void scatter(int actor, int piece, int m, std::uint32_t position) {
    settle(actor, position);
    Behind& b = behind_[std::size_t(actor)];
    b = {.number = started_[std::size_t(actor)]++,
         .scatter = index_.at(Part::S, piece),
         .add = index_.at(Part::A, piece),
         .microbatch = m};
    const Run run{.task = std::uint32_t(b.scatter), .microbatch = std::uint32_t(m), .action = position};
    p_.actors[std::size_t(actor)].code.push_back(Start{run, b.number});
  }
  void settle(int actor, std::uint32_t position) {
    const Behind b = std::exchange(behind_[std::size_t(actor)], {});
    if (b.scatter < 0) return;
    p_.actors[std::size_t(actor)].code.push_back(Await{b.number, std::uint32_t(b.scatter)});
    emit(actor, std::uint32_t(b.add), b.microbatch, position);
  }

  int actor_of(std::uint32_t task, int m) const { return actor_of_task_[p_.pipe_of[std::size_t(m)]][task]; }
  std::vector<int> targets_of(std::uint32_t value, int m) const {  // actors that read it, ascending
    std::vector<int> targets;
    for (std::uint32_t c : s_.values[value].consumers) targets.push_back(actor_of(c, m));
    std::sort(targets.begin(), targets.end());
    targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
    return targets;
  }

  void epilogue(Part part) {
    for (std::uint32_t t : index_.epilogue) {
      if (s_.tasks[t].part != part || done_.contains(t)) continue;
      for (int a = 0; a < int(p_.actors.size()); ++a)
        if (actor_of(t, 0) == everybody || actor_of(t, 0) == a) emit(a, t, 0, none);
    }
  }

  std::uint32_t value_transfer(std::uint32_t value, int m, int target) {
    const bool alone = targets_of(value, m) == std::vector{target};
    return transfers_.of_value(value, m, actor_of(s_.values[value].producer, m), target, !options_.remote && alone);
  }
  // Something persistent from one actor to another, once per step.
  void share(int source, int target, Binding what, std::string_view kind) {
    if (source != target) exchange(source, target, transfers_.of(what, source, target, kind));
  }
  void squares(int source, int target) {
    std::vector<std::uint32_t> params;
    for (std::uint32_t task : index_.epilogue)
      if (s_.tasks[task].part == Part::norm && actor_of(task, 0) == source) params.push_back(s_.tasks[task].subject);
    if (source != target && !params.empty())
      exchange(source, target, transfers_.of_squares(std::move(params), source, target));
  }
  void exchange(int source, int target, std::uint32_t transfer) {
    p_.actors[std::size_t(source)].code.push_back(Send{transfer});
    p_.actors[std::size_t(target)].code.push_back(Receive{transfer});
  }

  // Each right behind the last task of the stage's last action that adds to it; that action begins at `from`.
  void start_sums(int actor, int stage, std::size_t from) {
    for (std::uint32_t b = 0; b < p_.buckets.size(); ++b)
      if (p_.buckets[b].actor == actor && p_.buckets[b].stage == stage)
        start_behind(actor, pieces_of(p_.buckets[b]), from, StartSum{b});
    for (std::uint32_t t : index_.step_scatters) {
      const int piece = s_.tasks[t].piece;
      if (p_.actor_of(piece) == actor && p_.stage_of[std::size_t(piece)] == stage)
        start_behind(actor, {piece}, from, Start{{.task = t}, started_[std::size_t(actor)]++});
    }
  }
  // The schedule itself says where: per position, the stages whose sums start behind all that stands before it. One
  // without a mark, or with a mark that would be too early, has them behind its last action.
  std::multimap<std::uint32_t, int> marked_sums(int actor, const std::vector<std::uint32_t>& last) const {
    std::multimap<std::uint32_t, int> all;
    std::vector<std::uint32_t> at(last.size(), 0);
    for (const StorageMark& m : p_.schedule.marks[std::size_t(actor)])
      if (m.kind == StorageMark::Kind::reduce_grad && m.stage < at.size()) at[m.stage] = m.before;
    for (std::size_t stage = 0; stage < last.size(); ++stage)
      if (last[stage] != none) all.insert({std::max(at[stage], last[stage] + 1), int(stage)});
    return all;
  }
  void start_marked(int actor, std::multimap<std::uint32_t, int>& sums, std::uint32_t position) {
    for (; !sums.empty() && sums.begin()->first <= position; sums.erase(sums.begin())) {
      settle(actor, position - 1);
      start_sums(actor, sums.begin()->second, p_.actors[std::size_t(actor)].code.size());
    }
  }
  void start_behind(int actor, const std::set<int>& pieces, std::size_t from, const Instruction& start) {
    std::vector<Instruction>& code = p_.actors[std::size_t(actor)].code;
    std::size_t at = code.size();
    const auto adds = [&](const Instruction& i) {
      const Run* r = std::get_if<Run>(&i);
      return r && adds_to_gradients(s_.tasks[r->task].part) && pieces.contains(s_.tasks[r->task].piece);
    };
    const auto starts = [](const Instruction& i) {
      return std::holds_alternative<StartSum>(i) || std::holds_alternative<Start>(i);
    };
    while (at > from && !adds(code[at - 1])) --at;
    if (at == from) at = code.size();
    while (at < code.size() && starts(code[at])) ++at;
    code.insert(code.begin() + std::ptrdiff_t(at), start);
  }
  // Every sum is awaited where its norms are made, the first that was started first.
  void norms_of_sums(int actor) {
    std::vector<Instruction> started;
    for (const Instruction& i : p_.actors[std::size_t(actor)].code) {
      const Start* s = std::get_if<Start>(&i);
      if (std::holds_alternative<StartSum>(i) || (s && s_.tasks[s->run.task].inputs[0].place == Place::gradient))
        started.push_back(i);
    }
    std::map<std::uint32_t, std::uint32_t> norm_of;  // per parameter
    for (std::uint32_t t : index_.epilogue)
      if (s_.tasks[t].part == Part::norm) norm_of[s_.tasks[t].subject] = t;
    const auto now = [&](std::uint32_t task) {
      emit(actor, task, 0, none);
      done_.insert(task);
    };
    std::vector<Instruction>& code = p_.actors[std::size_t(actor)].code;
    for (const Instruction& i : started)
      if (const Start* s = std::get_if<Start>(&i)) {
        const Task& t = s_.tasks[s->run.task];
        code.push_back(Await{s->number, s->run.task});
        now(s_.values[t.outputs[0].index].consumers[0]);
        now(norm_of.at(t.subject));
      } else {
        const std::uint32_t b = std::get<StartSum>(i).bucket;
        code.push_back(AwaitSum{b});
        for (std::uint32_t g : p_.buckets[b].accumulators) now(norm_of.at(s_.accumulators[g].param));
      }
  }
  std::set<int> pieces_of(const GradientBucket& b) const {
    std::set<int> pieces;
    for (std::uint32_t g : b.accumulators) pieces.insert(s_.accumulators[g].piece);
    return pieces;
  }

  // Per stage with sums on this actor: the position of the last action that makes gradients of its weights.
  std::vector<std::uint32_t> last_backward(int actor, const Row& row) const {
    std::vector<std::uint32_t> last(pieces_.size(), none);
    std::set<int> summed;
    for (const GradientBucket& b : p_.buckets)
      if (b.actor == actor) summed.insert(b.stage);
    for (std::uint32_t t : index_.step_scatters)
      if (p_.actor_of(s_.tasks[t].piece) == actor) summed.insert(p_.stage_of[s_.tasks[t].piece]);
    for (std::uint32_t i = 0; i < row.size(); ++i)
      if ((row[i].phase == Phase::B || row[i].phase == Phase::W) && summed.contains(row[i].stage))
        last[row[i].stage] = i;
    return last;
  }

  // Per parameter, the actors whose tasks read it.
  void find_users() {
    users_.resize(s_.params.size());
    for (const std::vector<int>& actors : actor_of_task_)
      for (std::uint32_t t = 0; t < s_.tasks.size(); ++t)
        for (const Binding& b : s_.tasks[t].inputs)
          if (b.place == Place::param && actors[t] != everybody) users_[b.index].push_back(actors[t]);
    for (std::vector<int>& u : users_) {
      std::sort(u.begin(), u.end());
      u.erase(std::unique(u.begin(), u.end()), u.end());
    }
  }

  Program& p_;
  const Step& s_;
  const LowerOptions& options_;
  TaskIndex index_;
  std::vector<std::vector<int>> pieces_;  // per stage
  std::vector<bool> chained_;             // per stage: what one piece makes again is read by the R of another
  std::set<std::pair<std::uint16_t, std::uint32_t>> recomputed_;  // (stage, microbatch) with an R of their own
  std::vector<std::vector<int>> actor_of_task_;                   // per pipe
  std::vector<std::vector<int>> users_;                           // per parameter
  std::vector<std::vector<bool>> ran_;                            // per actor, per task and pipe
  std::vector<std::unordered_set<u64>> received_;                 // per actor: (value, microbatch)
  std::vector<Behind> behind_;                                    // per actor
  std::vector<std::uint32_t> started_;                            // per actor: how many numbers are taken
  std::set<std::uint32_t> done_;                                  // tasks of the epilogue that stand somewhere else
  Transfers transfers_{p_};
};

// Who updates a parameter: the actor of its first gradient; a frozen one's first reader.
std::vector<int> find_owners(const Program& p) {
  constexpr int nobody = -1;
  std::vector<int> owners(p.step->params.size(), nobody);
  for (const Accumulator& a : p.step->accumulators)
    if (owners[a.param] == nobody) owners[a.param] = p.actor_of(a.piece);
  for (const Task& t : p.step->tasks)
    if (t.part == Part::F || t.part == Part::U)
      for (const Binding& b : t.inputs)
        if (b.place == Place::param && owners[b.index] == nobody) owners[b.index] = p.actor_of(t.piece);
  std::replace(owners.begin(), owners.end(), nobody, 0);
  return owners;
}

}  // namespace

Program lower(std::shared_ptr<const Step> step, const Schedule& schedule, std::vector<int> stage_of,
              const LowerOptions& options) {
  Program p{.step = std::move(step),
            .schedule = schedule,
            .stage_of = std::move(stage_of),
            .microbatches = schedule.microbatches,
            .states = options.states,
            .rows = options.rows,
            .shared = options.shared};
  p.gate = options.gate;
  p.poll = options.poll;
  for (const Axis& a : options.mesh)
    if (a.name != "pipe") p.mesh.push_back(a);
  p.calls = fuse_all(*p.step);
  p.actors.resize(schedule.rows.size());
  p.pipe_of.assign(std::size_t(std::max(1, p.microbatches)), 0);
  for (const Row& row : schedule.rows)
    for (const Action& a : row) p.pipe_of[a.microbatch] = a.pipe;
  p.owners = find_owners(p);
  Lowering(p, options).run();
  refuse(settle_order(p));
  plan_memory(p, options.params_of);
  refuse(verify(p));
  return p;
}

}  // namespace stretto

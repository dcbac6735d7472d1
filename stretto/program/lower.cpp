// Step and schedule -> instructions.
#include <algorithm>
#include <map>

#include "stretto/program/memory.h"
#include "stretto/program/program.h"

namespace stretto {
namespace {

std::vector<std::shared_ptr<const Calls>> fuse_all(const Step& s) {
  std::map<std::tuple<const Graph*, std::vector<bool>, std::vector<int>>, std::shared_ptr<const Calls>> known;
  std::vector<std::shared_ptr<const Calls>> all;
  for (const Task& t : s.tasks) {
    FuseOptions o;
    for (const Binding& b : t.outputs) {
      o.accumulate.push_back(b.place == Place::gradient && t.part == Part::W);
      const auto same = std::find(t.inputs.begin(), t.inputs.end(), b);
      o.same_memory.push_back(same == t.inputs.end() ? -1 : int(same - t.inputs.begin()));
    }
    auto& calls = known[{t.body.get(), o.accumulate, o.same_memory}];
    if (!calls) calls = std::make_shared<const Calls>(fuse(*t.body, o));
    all.push_back(calls);
  }
  return all;
}

// Tasks by part and piece; per-step tasks in the order they stand in.
struct TaskIndex {
  explicit TaskIndex(const Step& s) : by_piece(3, std::vector<int>(std::size_t(s.pieces), -1)) {
    for (std::uint32_t t = 0; t < s.tasks.size(); ++t) {
      const Part part = s.tasks[t].part;
      if (part >= Part::F && part <= Part::W)
        by_piece[std::size_t(part) - std::size_t(Part::F)][s.tasks[t].piece] = int(t);
      else if (part == Part::count)
        counts.push_back(t);
      else if (part == Part::scale)
        scales.push_back(t);
      else
        epilogue.push_back(t);
    }
  }
  int at(Part part, int piece) const { return by_piece[std::size_t(part) - std::size_t(Part::F)][std::size_t(piece)]; }
  std::vector<std::vector<int>> by_piece;
  std::vector<std::uint32_t> counts, scales, epilogue;
};

class Lowering {
 public:
  Lowering(Program& p, int actor) : p_(p), actor_(actor), index_(*p.step), ran_(p.step->tasks.size(), false) {
    for (int piece = 0; piece < p.step->pieces; ++piece) {
      const std::size_t stage = std::size_t(p.stage_of[std::size_t(piece)]);
      if (pieces_.size() <= stage) pieces_.resize(stage + 1);
      pieces_[stage].push_back(piece);
    }
  }

  void run() {
    for (int m = 0; m < p_.microbatches; ++m)
      for (std::uint32_t t : index_.counts) emit(t, m, none);
    for (std::uint32_t t : index_.scales) emit(t, 0, none);
    const Row& row = p_.schedule.rows[std::size_t(actor_)];
    for (std::uint32_t i = 0; i < row.size(); ++i) action(row[i], i);
    for (std::uint32_t t : index_.epilogue) emit(t, 0, none);
  }

 private:
  static constexpr std::uint32_t none = ~0u;

  void action(const Action& a, std::uint32_t position) {
    const std::vector<int>& pieces = pieces_[a.stage];
    const int m = int(a.microbatch);
    const auto descending = [&](Part part) {
      for (auto it = pieces.rbegin(); it != pieces.rend(); ++it) emit_if(index_.at(part, *it), m, position);
    };
    if (a.phase == Phase::F)
      for (int piece : pieces) emit_if(index_.at(Part::F, piece), m, position);
    if (a.phase == Phase::B || a.phase == Phase::I) descending(Part::I);
    if (a.phase == Phase::B || a.phase == Phase::W) descending(Part::W);
  }
  void emit_if(int task, int m, std::uint32_t position) {
    if (task >= 0) emit(std::uint32_t(task), m, position);
  }
  void emit(std::uint32_t task, int m, std::uint32_t position) {
    p_.actors[std::size_t(actor_)].code.push_back(
        Run{.task = task, .microbatch = std::uint32_t(m), .overwrite = !ran_[task], .action = position});
    ran_[task] = true;
  }

  Program& p_;
  int actor_;
  TaskIndex index_;
  std::vector<bool> ran_;
  std::vector<std::vector<int>> pieces_;  // per stage
};

}  // namespace

Program lower(std::shared_ptr<const Step> step, const Schedule& schedule, std::vector<int> stage_of,
              const LowerOptions& options) {
  Program p{.step = std::move(step),
            .schedule = schedule,
            .stage_of = std::move(stage_of),
            .microbatches = schedule.microbatches,
            .states = options.states,
            .rows = options.rows};
  p.calls = fuse_all(*p.step);
  p.actors.resize(schedule.rows.size());
  for (int a = 0; a < int(p.actors.size()); ++a) {
    Lowering(p, a).run();
    plan_memory(p, a, options);
  }
  refuse(verify(p));
  return p;
}

u64 Program::hash() const {
  u64 h = hash_of(schedule.hash(), microbatches, states);
  for (const Task& t : step->tasks) hash_into(h, t.body->hash());
  for (const ActorProgram& a : actors) {
    for (const Instruction& i : a.code)
      if (const Run* r = std::get_if<Run>(&i)) hash_into(h, hash_of(r->task, r->microbatch, r->overwrite));
    for (const Slot& s : a.slots) hash_into(h, hash_of(s.arena, s.offset));
  }
  return h;
}

}  // namespace stretto

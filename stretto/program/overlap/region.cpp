#include "stretto/program/overlap/region.h"

#include <algorithm>

#include "stretto/base/match.h"

namespace stretto {

ActionId turn_of(const Row& row, ActionId i) {
  const auto joins = [&](const Action& a, const Action& before) {
    return a.phase == Phase::W || (a.overlap != 0 && a.overlap == before.overlap);
  };
  while (i.value > 0 && joins(row[i.value], row[i.value - 1])) i = ActionId(i.value - 1);
  return i;
}

bool go_together(const Action& a, const Action& b) {
  const auto backward = [](const Action& c) { return c.phase == Phase::B || c.phase == Phase::I; };
  const bool alike = (a.phase == Phase::F && b.phase == Phase::F) || (backward(a) && backward(b));
  return alike && a.overlap == 0 && b.overlap == 0 && a.microbatch != b.microbatch;
}

namespace {

bool has_collective(const Calls& body) {
  return std::any_of(body.calls.begin(), body.calls.end(),
                     [&](const KernelCall& c) { return body.graph.node(c.node).op->collective != nullptr; });
}

class Cutter {
 public:
  Cutter(const Program& p, ActorId actor, bool pairs)
      : p_(p), row_(p.row(actor)), code_(p.actors[actor].code.list()), pairs_(pairs && p.step->recompute.empty()) {}

  std::vector<Region> run() {
    for (std::size_t i = 0; i < code_.size(); ++i) {
      match(
          code_[i],
          [&](const Run& r) {
            run(r);
            end_ = i + 1;
          },
          [&](const Send&) { end_ = i + 1; },
          [](const OneOf<Receive, Start, Await> auto&) {});  // of the region to which the next run belongs
    }
    if (from_ < code_.size()) all_.push_back(Region(code_).subspan(from_));
    return std::move(all_);
  }

 private:
  void run(const Run& r) {
    std::optional<ActionId> mine;
    if (r.action) mine = turn_of(row_, *r.action);
    if (p_.schedule.pipes() > 1 && p_.task(r).part == Part::combine) mine = turn_;
    if (mine != turn_ && end_ > from_) next(mine);
    turn_ = mine;
  }
  void next(std::optional<ActionId> mine) {
    if (pairs_ && !pair_ && turn_ && mine && go_together(row_[turn_->value], row_[mine->value])) {
      pair_ = true;
      return;
    }
    all_.push_back(Region(code_).subspan(from_, end_ - from_));
    from_ = end_;
    pair_ = false;
  }

  const Program& p_;
  const Row& row_;
  const std::vector<Instruction>& code_;
  const bool pairs_;
  std::vector<Region> all_;
  std::size_t from_ = 0, end_ = 0;  // of the region at hand; after the last of its runs and sends
  std::optional<ActionId> turn_;
  bool pair_ = false;  // the region at hand has two turns
};

}  // namespace

std::vector<Region> regions_of(const Program& p, ActorId actor, bool pairs) { return Cutter(p, actor, pairs).run(); }

bool talks(const Program& p, Region region) {
  bool found = false;
  const auto fits_in = [&](TransferId t) {
    const Sent& what = p.transfers[t].what;
    return p.transfers[t].value() || std::holds_alternative<AccumulatorId>(what) ||
           std::holds_alternative<SentWord>(what);
  };
  for (const Instruction& i : region) {
    const bool fits = match(
        i,
        [&](const Run& r) {
          found = found || has_collective(*p.calls[r.task]);
          return (r.action || p.task(r).part == Part::combine) && !r.calls;
        },
        [&](const Send& s) { return fits_in(s.transfer); }, [&](const Receive& r) { return fits_in(r.transfer); },
        [](const Start&) { return true; }, [](const Await&) { return true; });
    if (!fits) return false;
  }
  return found;
}

StartedRuns started_runs(const ActorProgram& a) {
  StartedRuns all(a.collectives);
  for (const Instruction& i : a.code)
    if (const Start* s = start_of(i)) all[s->collective] = s->run;
  return all;
}

}  // namespace stretto

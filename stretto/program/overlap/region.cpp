#include "stretto/program/overlap/region.h"

#include <algorithm>

#include "stretto/base/match.h"

namespace stretto {

namespace {

bool joins(const Action& a, const Action& before) {
  return a.phase == Phase::W || (a.overlap != 0 && a.overlap == before.overlap);
}

}  // namespace

ActionId turn_of(const Row& row, ActionId i) {
  while (i.value > 0 && joins(row[i.value], row[i.value - 1])) i = ActionId(i.value - 1);
  return i;
}

ActionId turn_end(const Row& row, ActionId first) {
  ActionId end(first.value + 1);
  while (end.value < row.size() && joins(row[end.value], row[end.value - 1])) end = ActionId(end.value + 1);
  return end;
}

bool ends_turn(const Instruction& i) {
  return match(
      i, [](const OneOf<Run, Send> auto&) { return true; },
      [](const OneOf<Receive, Start, Await> auto&) { return false; });
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

// Where turns end in a stretch of code that begins with one.
class Cutter {
 public:
  Cutter(const Program& p, ActorId actor) : p_(p), row_(p.row(actor)) {}

  std::vector<std::size_t> ends(std::span<const Instruction> code) {
    for (std::size_t i = 0; i < code.size(); ++i) {
      if (const stretto::Run* r = run_of(code[i])) run(*r);
      if (ends_turn(code[i])) end_ = i + 1;
    }
    if (from_ < code.size()) all_.push_back(code.size());
    return std::move(all_);
  }

 private:
  void run(const Run& r) {
    std::optional<ActionId> mine;
    if (r.action) mine = turn_of(row_, *r.action);
    if (p_.schedule.pipes() > 1 && p_.task(r).part == Part::combine) mine = turn_;
    if (mine != turn_ && end_ > from_) all_.push_back(from_ = end_);
    turn_ = mine;
  }

  const Program& p_;
  const Row& row_;
  std::vector<std::size_t> all_;
  std::size_t from_ = 0, end_ = 0;  // of the turn at hand; after the last of its runs and sends
  std::optional<ActionId> turn_;
};

// The action with which a turn of the row begins.
std::optional<ActionId> begins_with(const Program& p, ActorId actor, const Code& code, const Turn& t) {
  for (const Instruction& i : code.kind(t).instructions)
    if (const Run* r = run_of(i))
      return r->action ? std::optional(turn_of(p.row(actor), code.action(t, *r->action))) : std::nullopt;
  return std::nullopt;
}

}  // namespace

void rewrite_turns(Program& p, ActorId actor, std::size_t from, std::size_t to, const std::vector<Instruction>& as) {
  const Code& old = p.actors[actor].code;
  Code code;
  for (const TurnCode& c : old.kinds()) code.add(c);
  const auto keep = [&](std::size_t first, std::size_t last) {
    for (std::size_t t = first; t < last; ++t) code.add(old.turns()[t].code, old.numbers(old.turns()[t]));
  };
  keep(0, from);
  std::size_t at = 0;
  for (const std::size_t end : Cutter(p, actor).ends(as)) {
    for (; at < end; ++at) code.push_back(as[at]);
    code.close();
  }
  keep(to, old.turns().size());
  p.actors[actor].code = std::move(code);
}

std::vector<TurnSpan> regions_of(const Program& p, ActorId actor, bool pairs) {
  const Code& code = p.actors[actor].code;
  const Row& row = p.row(actor);
  std::vector<TurnSpan> all;
  std::optional<ActionId> before;
  for (std::size_t t = 0; t < code.turns().size(); ++t) {
    const std::optional<ActionId> mine = begins_with(p, actor, code, code.turns()[t]);
    const bool joined = pairs && p.step->recompute.empty() && !all.empty() && all.back().count == 1 && before && mine &&
                        go_together(row[before->value], row[mine->value]);
    if (joined)
      ++all.back().count;
    else
      all.push_back({t, 1});
    before = mine;
  }
  return all;
}

std::vector<Instruction> written_out(const Code& code, TurnSpan turns) {
  std::vector<Instruction> all;
  for (std::size_t t = turns.first; t < turns.first + turns.count; ++t)
    for (const Instruction& i : code.written_out(code.turns()[t])) all.push_back(i);
  return all;
}

bool has_collectives(const Program& p, Region region) {
  return std::any_of(region.begin(), region.end(), [&](const Instruction& i) {
    const Run* r = run_of(i);
    return r && has_collective(*p.calls[r->task]);
  });
}

bool can_be_ordered(const Program& p, Region region) {
  const auto fits = [&](TransferId t) {
    const Sent& what = p.transfers[t].what;
    return p.transfers[t].value() || std::holds_alternative<AccumulatorId>(what) ||
           std::holds_alternative<SentWord>(what);
  };
  return std::all_of(region.begin(), region.end(), [&](const Instruction& i) {
    return match(
        i, [&](const Run& r) { return (r.action || p.task(r).part == Part::combine) && !r.calls; },
        [&](const Send& s) { return fits(s.transfer); }, [&](const Receive& r) { return fits(r.transfer); },
        [](const OneOf<Start, Await> auto&) { return true; });
  });
}

StartedRuns started_runs(const ActorProgram& a) {
  StartedRuns all(a.collectives);
  for (const Turn& t : a.code.turns())
    for (std::size_t k = 0; k < a.code.size(t); ++k)
      if (start_of(a.code.kind(t).instructions[k])) {
        const Instruction i = a.code.at(t, k);
        all[start_of(i)->collective] = start_of(i)->run;
      }
  return all;
}

}  // namespace stretto

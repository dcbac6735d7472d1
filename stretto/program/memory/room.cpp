#include "stretto/program/memory/room.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "stretto/program/overlap/region.h"

namespace stretto {
namespace {

// Before an instruction. The turn before it may end later than it did.
void insert(Program& p, ActorId actor, InstructionId at, const Instruction& what) {
  const Code& code = p.actors[actor].code;
  const std::size_t turn = code.has(at) ? code.turn_of(at) : code.turns().size() - 1, from = turn > 0 ? turn - 1 : turn;
  std::vector<Instruction> all = written_out(code, {from, turn + 1 - from});
  all.insert(all.begin() + (at.value - code.turns()[from].first.value), what);
  rewrite_turns(p, actor, from, turn + 1, all);
}

// The action after which activations only go: none, when the actor makes no gradients.
std::optional<ActionId> first_release(const Row& row) {
  std::optional<ActionId> found;
  for (std::size_t i = row.size(); i-- > 0 && row[i].phase != Phase::F;)
    if (row[i].phase == Phase::B || row[i].phase == Phase::W) found = ActionId(i);
  return found;
}

// Right after the last instruction of an action.
InstructionId after(const Code& code, ActionId action) {
  InstructionId at(0), end(0);
  for (const Instruction& i : code) {
    ++end.value;
    if (const Run* r = task_of(i); r && r->action == action) at = end;
  }
  return at;
}

InstructionId first_gradient(const Program& p, ActorId source, ActorId target) {
  const Code& code = p.actors[source].code;
  InstructionId at(0);
  for (const Instruction& i : code) {
    const std::optional<TransferId> t = sent_by(i);
    if (t && std::holds_alternative<AccumulatorId>(p.transfers[*t].what) &&
        p.routes[p.transfers[*t].route].target == target)
      break;
    ++at.value;
  }
  return at;
}

}  // namespace

void say_when_there_is_room(Program& p) {
  std::set<std::pair<ActorId, ActorId>> pairs;  // receiver and sender
  for (const Transfer& t : p.transfers)
    if (std::holds_alternative<AccumulatorId>(t.what))
      pairs.insert({p.routes[t.route].target, p.routes[t.route].source});
  for (const auto& [target, source] : pairs) {
    const std::optional<ActionId> action = first_release(p.row(target));
    if (!action) continue;
    const RouteId route =
        p.routes.push_back({target, source, 0, fmt::format("room for gradients of {}", source.value)});
    const TransferId told = p.transfers.push_back({.route = route, .what = SentWord{}});
    insert(p, target, after(p.actors[target].code, *action), Send{told});
    insert(p, source, first_gradient(p, source, target), Receive{told});
  }
}

}  // namespace stretto

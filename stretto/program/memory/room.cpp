#include "stretto/program/memory/room.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace stretto {
namespace {

using Code = IdVector<InstructionId, Instruction>;

void insert(Code& code, InstructionId at, Instruction what) {
  Code all;
  for (std::uint32_t n = 0; n <= code.size(); ++n) {
    if (InstructionId(n) == at) all.push_back(what);
    if (code.has(InstructionId(n))) all.push_back(std::move(code[InstructionId(n)]));
  }
  code = std::move(all);
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
  InstructionId at(0);
  for (InstructionId i : code.ids())
    if (const Run* r = task_of(code[i]); r && r->action == action) at = InstructionId(i.value + 1);
  return at;
}

InstructionId first_gradient(const Program& p, ActorId source, ActorId target) {
  const Code& code = p.actors[source].code;
  const auto it = std::find_if(code.begin(), code.end(), [&](const Instruction& i) {
    const std::optional<TransferId> t = sent_by(i);
    return t && std::holds_alternative<AccumulatorId>(p.transfers[*t].what) &&
           p.routes[p.transfers[*t].route].target == target;
  });
  return InstructionId(it - code.begin());
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
    insert(p.actors[target].code, after(p.actors[target].code, *action), Send{told});
    insert(p.actors[source].code, first_gradient(p, source, target), Receive{told});
  }
}

}  // namespace stretto

#include "stretto/program/overlap/turns.h"

#include "stretto/program/overlap/recipe.h"

namespace stretto {

Turns::Turns(const Program& p, bool apart) : p_(p), apart_(apart), facts_(p.mesh), voices_(p.actors.size()) {
  for (ActorId a : p.actors.ids()) voices_[a].runs = started_runs(p.actors[a]);
}

std::vector<Turn>& Turns::of(ActorId actor, bool pairs) {
  std::optional<std::vector<Turn>>& all = pairs ? voices_[actor].pairs : voices_[actor].turns;
  if (!all) {
    all.emplace();
    for (const Region& r : regions_of(p_, actor, pairs)) all->push_back(turn(r));
  }
  return *all;
}

KindId Turns::kind(ActorId actor, Turn& t) {
  auto& kinds = voices_[actor].kinds;
  if (!t.kind)
    t.kind = kinds.try_emplace(likeness(p_, actor, t.region, voices_[actor].runs), KindId(kinds.size())).first->second;
  return *t.kind;
}

RegionWork& Turns::work(ActorId actor, Turn& t) {
  if (!t.work) t.work = work_of(p_, t.region, voices_[actor].runs, facts_, apart_);
  return *t.work;
}

}  // namespace stretto

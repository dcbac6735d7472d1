#include "stretto/program/overlap/region_kinds.h"

#include <algorithm>

namespace stretto {
namespace {

// Which of a list's entries are equal: each as the position of the first like it.
template <class I>
void add_equalities(std::vector<u64>& key, const std::vector<I>& all) {
  key.push_back(all.size());
  for (const I& x : all) key.push_back(u64(std::find(all.begin(), all.end(), x) - all.begin()));
}

}  // namespace

RegionKinds::RegionKinds(const Program& p, bool apart)
    : p_(p), apart_(apart), facts_(p.mesh), actors_(p.actors.size()) {
  for (ActorId a : p.actors.ids()) {
    actors_[a].runs = started_runs(p.actors[a]);
    actors_[a].codes.resize(p.actors[a].code.kinds().size());
  }
}

const std::vector<TurnSpan>& RegionKinds::of(ActorId actor, bool pairs) {
  std::optional<std::vector<TurnSpan>>& all = pairs ? actors_[actor].pairs : actors_[actor].turns;
  if (!all) all = regions_of(p_, actor, pairs);
  return *all;
}

const RegionKinds::OfTurn& RegionKinds::of_turn(ActorId actor, const Turn& t) {
  std::optional<OfTurn>& known = actors_[actor].codes[t.code];
  if (known) return *known;
  const Code& code = p_.actors[actor].code;
  const std::vector<Instruction> all = code.written_out(t);
  known = OfTurn{.fits = can_be_ordered(p_, all), .collective = stretto::has_collectives(p_, all)};
  const std::vector<Instruction>& numbered = code.kind(t).instructions;
  for (std::size_t k = 0; k < numbered.size(); ++k)
    if (const auto received = received_by(numbered[k])) known->receptions.push_back({k, *received});
  return *known;
}

bool RegionKinds::has_collectives(ActorId actor, TurnSpan span) {
  const Code& code = p_.actors[actor].code;
  bool found = false;
  for (std::size_t t = span.first; t < span.first + span.count; ++t) {
    const OfTurn& x = of_turn(actor, code.turns()[t]);
    if (!x.fits) return false;
    found = found || x.collective;
  }
  return found;
}

const std::vector<RegionKinds::Reception>& RegionKinds::receptions(ActorId actor, TurnCodeId code) {
  return actors_[actor].codes[code]->receptions;
}

KindId RegionKinds::kind(ActorId actor, const NextRegion& r) {
  const Code& code = p_.actors[actor].code;
  std::vector<u64> key{r.left.size()};
  for (const Instruction& i : r.left) {
    const Run& r = *run_of(i);
    key.insert(key.end(), {r.task.value, p_.pipe_of[r.microbatch].value, r.overwrite});
  }
  for (std::size_t t = 0; t < r.turns.count; ++t) key.push_back(code.turns()[r.turns.first + t].code.value);
  if (!r.left.empty() || r.turns.count > 1) {
    const TurnNumbers n = numbers_of(code, r);
    add_equalities(key, n.microbatches), add_equalities(key, n.actions), add_equalities(key, n.collectives);
  }
  OfActor& a = actors_[actor];
  const auto [it, fresh] = a.kinds.try_emplace(std::move(key), a.of_kinds.next_id());
  if (fresh) a.of_kinds.push_back({});
  return it->second;
}

RegionKinds::OfKind& RegionKinds::of_kind(ActorId actor, KindId kind, Region region) {
  OfActor& a = actors_[actor];
  std::optional<OfKind>& known = a.of_kinds[kind];
  if (known) return *known;
  known.emplace();
  known->ordered = stretto::can_be_ordered(p_, region) && stretto::has_collectives(p_, region);
  if (known->ordered) known->work = work_of(p_, region, a.runs, facts_, apart_);
  return *known;
}

TurnNumbers numbers_of(const Code& code, const NextRegion& r) {
  TurnNumbers all;
  for (const Instruction& i : r.left) {
    all.microbatches.push_back(run_of(i)->microbatch);
    all.actions.push_back(run_of(i)->action.value());
  }
  for (std::size_t t = r.turns.first; t < r.turns.first + r.turns.count; ++t) all.add(code.numbers(code.turns()[t]));
  return all;
}

Instruction instruction_at(const Code& code, const NextRegion& r, RegionAt at) {
  if (at.value < r.left.size()) return r.left[at.value];
  std::size_t k = at.value - r.left.size(), t = r.turns.first;
  for (; k >= code.size(code.turns()[t]); ++t) k -= code.size(code.turns()[t]);
  return code.at(code.turns()[t], k);
}

std::vector<Instruction> written_out(const Code& code, const NextRegion& r) {
  std::vector<Instruction> all = r.left;
  for (const Instruction& i : written_out(code, r.turns)) all.push_back(i);
  return all;
}

}  // namespace stretto

#include "stretto/program/emit/known_turns.h"

namespace stretto {

std::uint32_t Standing::number(MicrobatchId m) {
  const auto it = std::find(microbatches.begin(), microbatches.end(), m);
  const auto n = it - microbatches.begin();
  if (it == microbatches.end()) microbatches.push_back(m);
  return MicrobatchId(n).value;
}

KnownTurns::Begun KnownTurns::begun_as(CollectiveId c, const Standing& now) {
  if (c.value >= now.begun) return {true, c.value - now.begun};
  return {false, CollectiveId(std::find(now.left.begin(), now.left.end(), c) - now.left.begin()).value};
}
CollectiveId KnownTurns::collective(const Begun& b, const Standing& now) {
  return b.here ? CollectiveId(now.begun + b.number) : now.left[b.number];
}
ActionId KnownTurns::action(std::int64_t distance, const Standing& now) { return ActionId(now.from.value + distance); }

void KnownTurns::add(const TurnKey& key, Standing& now, const std::vector<Instruction>& written, const LeftOver& left) {
  auto [code, numbers] = numbered(written);
  const std::size_t known = now.microbatches.size();
  Code& all = p_.actors[actor_].code;
  Known k{.code = all.add(std::move(code))};
  for (MicrobatchId m : numbers.microbatches) k.microbatches.push_back(now.number(m));
  for (ActionId a : numbers.actions) k.actions.push_back(now.distance(a));
  for (TransferId t : numbers.transfers) {
    const SentValue& v = *p_.transfers[t].value();
    k.messages.push_back({v.value, now.number(v.microbatch), p_.routes[p_.transfers[t].route].target});
  }
  for (CollectiveId c : numbers.collectives) k.collectives.push_back(begun_as(c, now));
  k.begun = p_.actors[actor_].collectives - now.begun;
  note_left(k, now, left);
  STRETTO_ASSERT(now.microbatches.size() == known, "a turn has other microbatches than its key");
  all.add(k.code, numbers);
  known_.emplace(key, std::move(k));
}

void KnownTurns::note_left(Known& k, Standing& now, const LeftOver& left) const {
  for (const Instruction& i : left.starts) {
    const Start& s = *start_of(i);
    LeftStart x{.run = s.run, .collective = begun_as(s.collective, now)};
    x.run.microbatch = MicrobatchId(now.number(s.run.microbatch));
    if (s.run.action) x.action = now.distance(*s.run.action);
    k.starts.push_back(x);
  }
  if (const auto& x = left.settles)
    k.settles = LeftSum{begun_as(x->collective, now), x->scatter, x->piece, now.number(x->microbatch)};
}

bool KnownTurns::repeat(const TurnKey& key, const Standing& now, LeftOver& left) {
  const auto known = known_.find(key);
  if (known == known_.end()) return false;
  const Known& k = known->second;
  TurnNumbers numbers;
  for (std::uint32_t m : k.microbatches) numbers.microbatches.push_back(now.microbatches[m]);
  for (std::int64_t a : k.actions) numbers.actions.push_back(action(a, now));
  for (const Message& x : k.messages) {
    const MicrobatchId m = now.microbatches[x.microbatch];
    numbers.transfers.push_back(x.target == actor_ ? e_.receive(x.value, m, actor_) : e_.send(x.value, m, x.target));
  }
  for (const Begun& c : k.collectives) numbers.collectives.push_back(collective(c, now));
  p_.actors[actor_].collectives += k.begun;
  left = {};
  for (const LeftStart& x : k.starts) {
    Start s{x.run, collective(x.collective, now)};
    s.run.microbatch = now.microbatches[x.run.microbatch.value];
    if (x.action) s.run.action = action(*x.action, now);
    left.starts.push_back(s);
  }
  if (const auto& x = k.settles)
    left.settles =
        GradientsUnderWay{collective(x->collective, now), x->scatter, x->piece, now.microbatches[x->microbatch]};
  p_.actors[actor_].code.add(k.code, numbers);
  return true;
}

}  // namespace stretto

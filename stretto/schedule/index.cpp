#include "stretto/schedule/index.h"

#include "stretto/base/id.h"

namespace stretto {

bool ActionIndex::fits(const Schedule& s) {
  if (s.rows.empty() || s.actors() > most_actors || s.stages < 1 || s.stages > 1 << 16 || s.microbatches < 1 ||
      s.segments < 1 || s.segments > 1 << 16)
    return false;
  if (s.pipes() < 1 || s.pipes() > 2) return false;
  for (const auto& placement : s.actor_of)
    if (std::ssize(placement) != s.stages) return false;
  // At most 2 * 2^16 * 2^31 * 2^16 = 2^64 - something: stop before the last factor.
  const u64 without = u64{1} * s.pipes() * s.stages * s.microbatches, most = 4 * s.actions() + 4096;
  return s.actions() < 1u << 29 && without <= most && without * s.segments <= most;
}

ActionIndex::ActionIndex(const Schedule& s)
    : pipes_(s.pipes()), stages_(s.stages), microbatches_(s.microbatches), segments_(s.segments) {
  for (const auto& placement : s.actor_of) holder_.insert(holder_.end(), placement.begin(), placement.end());
  const std::size_t n = s.actions();
  actions.reserve(n);
  actor.reserve(n);
  item.reserve(n);
  row_begin_.reserve(s.rows.size() + 1);
  first_.resize(pipes_ * stages_ * stage_stride());
  std::uint32_t items = 0;
  for (const ActorId r : s.rows.ids()) {
    row_begin_.push_back(actions.size());
    for (std::size_t i = 0; i < s.rows[r].size(); ++i) {
      const Action& a = s.rows[r][i];
      if (i == 0 || a.overlap == 0 || a.overlap != s.rows[r][i - 1].overlap) ++items;
      if (known(a)) {
        ActionNumber& first = first_[key(a)][a.phase];
        if (!first) first = actions.size();
      }
      actions.push_back(a);
      actor.push_back(r);
      item.push_back(items);
    }
  }
  row_begin_.push_back(actions.size());
}

ActionNumber ActionIndex::producer(std::uint32_t i) const {
  const Action& a = actions[i];
  if (!known(a)) return {};
  if (a.phase == Phase::F && a.stage.value > 0) return first(key(a) - stage_stride(), Phase::F);
  if ((a.phase == Phase::I || a.phase == Phase::B) && a.stage.value + 1u < stages_)
    return gradient(key(a) + stage_stride());
  return {};
}

}  // namespace stretto

#include "stretto/schedule/index.h"

namespace stretto {

bool ActionIndex::fits(const Schedule& s) {
  if (s.rows.empty() || s.stages < 1 || s.stages > 1 << 16 || s.microbatches < 1 || s.pieces < 1 || s.pieces > 1 << 16)
    return false;
  if (s.pipes() < 1 || s.pipes() > 2) return false;
  for (const auto& placement : s.actor_of) {
    if (placement.size() != std::size_t(s.stages)) return false;
  }
  // At most 2 * 2^16 * 2^31 * 2^16 = 2^64 - something: stop before the last factor.
  const std::uint64_t without = std::uint64_t(s.pipes()) * std::uint64_t(s.stages) * std::uint64_t(s.microbatches);
  const std::uint64_t most = 4 * std::uint64_t(s.actions()) + 4096;
  return s.actions() < none / 8 && without <= most && without * std::uint64_t(s.pieces) <= most;
}

ActionIndex::ActionIndex(const Schedule& s)
    : pipes_(s.pipes()), stages_(s.stages), microbatches_(s.microbatches), pieces_(s.pieces) {
  for (const auto& placement : s.actor_of) holder_.insert(holder_.end(), placement.begin(), placement.end());
  const std::size_t n = s.actions();
  actions.reserve(n);
  actor.reserve(n);
  item.reserve(n);
  row_begin.reserve(s.rows.size() + 1);
  first_.assign(std::size_t(pipes_) * std::size_t(stages_) * stage_stride(), {none, none, none, none, none});
  std::uint32_t items = 0;
  for (std::size_t r = 0; r < s.rows.size(); ++r) {
    row_begin.push_back(std::uint32_t(actions.size()));
    for (std::size_t i = 0; i < s.rows[r].size(); ++i) {
      const Action& a = s.rows[r][i];
      if (i == 0 || a.overlap == 0 || a.overlap != s.rows[r][i - 1].overlap) ++items;
      if (known(a)) {
        std::uint32_t& first = first_[key(a)][std::size_t(a.phase)];
        if (first == none) first = std::uint32_t(actions.size());
      }
      actions.push_back(a);
      actor.push_back(std::uint32_t(r));
      item.push_back(items);
    }
  }
  row_begin.push_back(std::uint32_t(actions.size()));
}

std::uint32_t ActionIndex::producer(std::uint32_t i) const {
  const Action& a = actions[i];
  if (!known(a)) return none;
  if (a.phase == Phase::F) return a.stage == 0 ? none : first(key(a) - stage_stride(), Phase::F);
  if (a.phase == Phase::I || a.phase == Phase::B) {
    return int(a.stage) + 1 == stages_ ? none : gradient(key(a) + stage_stride());
  }
  return none;
}

}  // namespace stretto

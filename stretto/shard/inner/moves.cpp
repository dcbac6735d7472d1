#include "stretto/shard/inner/moves.h"

#include <algorithm>

namespace stretto {
namespace {

bool has(const AxisList& list, AxisId a) { return std::find(list.begin(), list.end(), a) != list.end(); }

AxisList joined(AxisList list, const AxisList& more) {
  list.insert(list.end(), more.begin(), more.end());
  return list;
}

class Mover {
 public:
  Mover(std::vector<AxisList> now, const std::vector<AxisList>& goal, AxisSet pending, Gather how)
      : now_(std::move(now)), goal_(goal), pending_(pending), how_(how) {}

  // In the order of what they cost.
  std::optional<Move> next() const {
    if (auto m = cut()) return m;
    if (auto m = scatter()) return m;
    if (auto m = exchange()) return m;
    return gather();
  }

  void apply(const Move& m) {
    now_[m.change.dim] = m.change.lies_on;
    if (m.from) now_[m.from->dim] = m.from->lies_on;
    if (m.kind == Move::Kind::scatter) pending_ -= m.over;
    if (m.kind == Move::Kind::unblock) pending_ |= m.over;
  }

  AxisSet pending() const { return pending_; }

 private:
  std::size_t dims() const { return now_.size(); }
  std::size_t common(std::size_t dim) const {
    const AxisList &a = now_[dim], &b = goal_[dim];
    return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
  }
  bool ready(std::size_t dim) const { return common(dim) == now_[dim].size(); }  // it only has to get more axes

  // The dim that lies on this axis.
  std::optional<std::size_t> holder(AxisId a) const {
    for (std::size_t j = 0; j < dims(); ++j)
      if (has(now_[j], a)) return j;
    return {};
  }
  bool wanted(AxisId a) const {
    return std::any_of(goal_.begin(), goal_.end(), [&](const AxisList& list) { return has(list, a); });
  }

  // The next axes of a dim that no dim lies on and that are all pending, or all not.
  AxisList next_free(std::size_t dim, bool are_pending) const {
    AxisList run;
    if (!ready(dim)) return run;
    for (std::size_t k = now_[dim].size(); k < goal_[dim].size(); ++k) {
      const AxisId a = goal_[dim][k];
      if (holder(a) || pending_.has(a) != are_pending) break;
      run.push_back(a);
    }
    return run;
  }

  std::optional<Move> take_free(Move::Kind kind, bool pending) const {
    for (std::size_t j = 0; j < dims(); ++j)
      if (const AxisList run = next_free(j, pending); !run.empty())
        return Move{.kind = kind, .over = run, .change = {j, joined(now_[j], run)}};
    return {};
  }
  std::optional<Move> cut() const { return take_free(Move::Kind::cut, false); }
  std::optional<Move> scatter() const { return take_free(Move::Kind::scatter, true); }

  // A dim's next axis from another dim that has it last and must lose it.
  std::optional<Move> exchange() const {
    for (std::size_t j = 0; j < dims(); ++j) {
      if (!ready(j) || now_[j].size() == goal_[j].size()) continue;
      const AxisId a = goal_[j][now_[j].size()];
      const std::optional<std::size_t> from = holder(a);
      if (!from || *from == j || now_[*from].back() != a || ready(*from)) continue;
      AxisList less = now_[*from];
      less.pop_back();
      return Move{.kind = Move::Kind::exchange,
                  .over = {a},
                  .change = {j, joined(now_[j], {a})},
                  .from = Move::Change{*from, std::move(less)}};
    }
    return {};
  }

  // The last axes of a dim that must lose them: those that no dim wants, else one that some dim wants.
  std::optional<Move> gather() const {
    for (std::size_t j = 0; j < dims(); ++j) {
      if (ready(j)) continue;
      AxisList rest = now_[j], run;
      const std::size_t least = common(j);
      while (rest.size() > least && !wanted(rest.back())) rest.pop_back();
      const bool in_vain = rest == now_[j];
      if (in_vain) rest.pop_back();
      run.assign(now_[j].begin() + rest.size(), now_[j].end());
      return Move{.kind = how_ == Gather::now ? Move::Kind::gather : Move::Kind::unblock,
                  .over = std::move(run),
                  .change = {j, std::move(rest)},
                  .in_vain = in_vain};
    }
    return {};
  }

  std::vector<AxisList> now_;
  const std::vector<AxisList>& goal_;
  AxisSet pending_;
  Gather how_;
};

}  // namespace

Moves moves_between(std::vector<AxisList> now, const std::vector<AxisList>& goal, AxisSet pending, Gather how) {
  Mover mover(std::move(now), goal, pending, how);
  Moves moves;
  while (std::optional<Move> m = mover.next()) {
    mover.apply(*m);
    moves.list.push_back(std::move(*m));
  }
  moves.pending = mover.pending();
  return moves;
}

}  // namespace stretto

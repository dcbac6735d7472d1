// Actors that go on, each in its own order, until it waits for something that another brings about. Every play of a
// schedule or a program is one.
//
//   InOrder<TransferId> order(actors, transfers);
//   order.run([&](ActorId a) -> std::optional<TransferId> { ... });   // plays a; what it waits for, none at its end
//   order.happened(transfer);                                         // in there: those who wait for it go on
//
// Every actor gets as far as it can, whichever goes first: what is left in the end waits forever.
#pragma once
#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "stretto/base/id.h"

namespace stretto {

template <class What>
class InOrder {
 public:
  InOrder(std::size_t actors, std::size_t things) : waits_(actors), next_(actors), first_(things) {
    for (std::size_t a = actors; a-- > 0;) ready_.push_back(ActorId(a));
  }

  template <class Play>
  void run(Play play) {
    while (!ready_.empty()) {
      const ActorId a = ready_.back();
      ready_.pop_back();
      waits_[a] = play(a);
      if (waits_[a]) next_[a] = std::exchange(first_[number(*waits_[a])], a);
    }
  }
  void happened(What w) {
    for (std::optional<ActorId> a = std::exchange(first_[number(w)], {}); a; a = next_[*a]) go_on(*a);
  }
  // It goes on although what it waits for has not happened.
  void release(ActorId a) {
    std::optional<ActorId>* at = &first_[number(*waits_[a])];
    while (**at != a) at = &next_[**at];
    *at = next_[a];
    go_on(a);
  }

  const std::optional<What>& waits(ActorId a) const { return waits_[a]; }
  bool finished() const {
    return std::ranges::none_of(waits_, [](const std::optional<What>& w) { return w.has_value(); });
  }
  // Calls visit(actors) for every circle of actors of which each waits for the next; `needs` says for whom one waits.
  template <class Needs, class Visit>
  void circles(Needs needs, Visit visit) const {
    IdVector<ActorId, std::optional<ActorId>> seen(waits_.size());
    for (const ActorId start : seen.ids()) {
      ActorId a = start;
      for (; waits_[a] && !seen[a]; a = needs(a)) seen[a] = start;
      if (!waits_[a] || seen[a] != start) continue;
      std::vector<ActorId> circle{a};
      while ((a = needs(a)) != circle.front()) circle.push_back(a);
      visit(circle);
    }
  }

 private:
  static std::size_t number(What w) {
    if constexpr (std::is_integral_v<What>)
      return w;
    else
      return w.value;
  }
  void go_on(ActorId a) {
    waits_[a] = {};
    ready_.push_back(a);
  }

  IdVector<ActorId, std::optional<What>> waits_;
  IdVector<ActorId, std::optional<ActorId>> next_;  // who waits for the same
  std::vector<std::optional<ActorId>> first_;       // per thing: who waits for it
  std::vector<ActorId> ready_;
};

}  // namespace stretto

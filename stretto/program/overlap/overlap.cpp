#include "stretto/program/overlap/overlap.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "stretto/program/overlap/call_order.h"
#include "stretto/program/overlap/region_kinds.h"
#include "stretto/schedule/in_order.h"

namespace stretto {
namespace {

// Turns share an order if they are alike, their messages are equally late, and their successors both have collectives
// or both have none.
using OrderKey = std::tuple<KindId, bool, std::map<RegionAt, double>>;

// The turns of all actors in the order in which they would happen. A turn is ordered when the arrival times of its
// messages are known.
class TurnOrder {
 public:
  TurnOrder(const Program& p, RegionKinds& kinds, WorkTimes& times, const Arrangement& reach)
      : p_(p),
        kinds_(kinds),
        times_(times),
        reach_(reach),
        arrives_(p.transfers.size()),
        order_(p.actors.size(), p.transfers.size()) {
    for (ActorId a : p.actors.ids()) {
      actors_.push_back({.regions = &kinds.of(a, reach.pairs)});
      actors_[a].out.collectives = p.actors[a].collectives;
      if (actors_[a].more()) actors_[a].next.turns = actors_[a].regions->front();
    }
  }

  // An actor goes on when it is known when the messages come that its turn receives. Turns may wait for each other:
  // then the actor that is the furthest behind says when it would send if what it does not know came last (`sketch`),
  // and when all have, it goes on like that.
  IdVector<ActorId, ActorProgram> run() {
    while (true) {
      order_.run([&](ActorId a) { return advance(a); });
      const std::optional<ActorId> behind = furthest_behind();
      if (!behind) break;
      if (!actors_[*behind].sketched)
        sketch(*behind);
      else
        go_on(*behind), order_.release(*behind);
    }
    IdVector<ActorId, ActorProgram> all;
    for (ActorTurns& x : actors_) all.push_back(std::move(x.out));
    return all;
  }

 private:
  // An order, and the code that turns have in it.
  struct Ordered {
    CallOrder order;
    std::optional<TurnCodeId> code = {};
    NumbersWithin numbers = {};
    std::uint32_t begun = 0;  // collectives
  };
  struct ActorTurns {
    const std::vector<TurnSpan>* regions;
    std::size_t at = 0;
    NextRegion next = {};
    std::map<OrderKey, Ordered> orders = {};
    double time = 0;
    bool sketched = false;  // the region at hand
    ActorProgram out = {};  // its code, and how many collectives it starts
    bool more() const { return at < regions->size(); }
  };
  std::optional<ActorId> furthest_behind() const {
    std::optional<ActorId> behind;
    const auto order = [&](ActorId a) { return std::pair(actors_[a].sketched, actors_[a].time); };
    for (ActorId a : actors_.ids())
      if (actors_[a].more() && (!behind || order(a) < order(*behind))) behind = a;
    return behind;
  }
  const Code& code_of(ActorId a) const { return p_.actors[a].code; }

  // Calls visit(position in the region, transfer) for all that the region at hand receives.
  template <class Visit>
  void receptions(ActorId a, Visit visit) {
    const ActorTurns& x = actors_[a];
    const Code& code = code_of(a);
    kinds_.has_collectives(a, x.next.turns);
    std::size_t begin = x.next.left.size();
    for (std::size_t t = x.next.turns.first; t < x.next.turns.first + x.next.turns.count; ++t) {
      const Turn& turn = code.turns()[t];
      for (const auto& [at, number] : kinds_.receptions(a, turn.code))
        visit(RegionAt(begin + at), code.transfer(turn, number));
      begin += code.size(turn);
    }
  }
  std::optional<TransferId> advance(ActorId a) {
    for (; actors_[a].more(); go_on(a))
      if (const auto unknown = missing(a)) return unknown;
    return std::nullopt;
  }
  // Something that it receives of which it is not known when it comes.
  std::optional<TransferId> missing(ActorId a) {
    std::optional<TransferId> first;
    receptions(a, [&](RegionAt, TransferId t) {
      if (!first && !arrives_[t]) first = t;
    });
    return first;
  }
  void go_on(ActorId a) {
    ActorTurns& x = actors_[a];
    Ordered& o = order_at_hand(a);
    send(a, o.order);
    place(a, o);
    x.time += o.order.seconds;
    x.sketched = false;
    std::vector<Instruction> left;
    for (RegionAt at : o.order.left) left.push_back(instruction_at(code_of(a), x.next, at));
    if (++x.at < x.regions->size()) x.next = {std::move(left), (*x.regions)[x.at]};
  }
  void sketch(ActorId a) {
    send(a, order_at_hand(a).order);
    actors_[a].sketched = true;
  }
  // Gradients of other actors come with the last of what these do.
  double lateness(TransferId t, double now) const {
    constexpr double unknown = std::numeric_limits<double>::infinity();
    if (!reach_.late) return p_.transfers[t].value() ? 0 : unknown;
    return arrives_[t] ? rounded_lateness(std::max(0.0, *arrives_[t] - now)) : unknown;
  }
  Ordered& order_at_hand(ActorId a) {
    ActorTurns& x = actors_[a];
    const bool leaves = x.at + 1 < x.regions->size() && kinds_.has_collectives(a, (*x.regions)[x.at + 1]);
    std::map<RegionAt, double> late;
    receptions(a, [&](RegionAt at, TransferId t) {
      if (const double seconds = lateness(t, x.time); seconds > 0) late[at] = seconds;
    });
    const KindId kind = kinds_.kind(a, x.next);
    const auto [it, fresh] = x.orders.try_emplace({kind, leaves, late});
    if (!fresh) return it->second;
    const std::vector<Instruction> region = written_out(code_of(a), x.next);
    const RegionAsItComes comes{p_, a, region, std::move(late)};
    RegionKinds::OfKind& facts = kinds_.of_kind(a, kind, region);
    it->second.order = facts.ordered ? order_calls(comes, *facts.work, times_, leaves ? reach_.weights : 0)
                                     : as_it_stands(comes, times_);
    return it->second;
  }
  void send(ActorId a, const CallOrder& order) {
    for (const auto& [at, after] : order.sent) {
      const TransferId t = std::get<Send>(instruction_at(code_of(a), actors_[a].next, at)).transfer;
      arrives_[t] = actors_[a].time + after + times_.message(p_.routes[p_.transfers[t].route]);
      order_.happened(t);
    }
  }
  // A code is made for the first turn that has an order; for others only what its numbers stand for is found.
  void place(ActorId a, Ordered& o) {
    ActorTurns& x = actors_[a];
    TurnNumbers numbers = numbers_of(code_of(a), x.next);
    const CollectiveId begun(x.out.collectives);
    if (!o.code) {
      const std::vector<Instruction> region = written_out(code_of(a), x.next);
      auto [code, own] = numbered(in_order(o.order, region, begun));
      for (const OrderedCall& c : o.order.calls) o.begun += std::holds_alternative<StartCall>(c);
      for (std::uint32_t k = 0; k < o.begun; ++k) numbers.collectives.push_back(CollectiveId(begun.value + k));
      o.numbers = places_of(own, numbers);
      o.code = x.out.code.add(std::move(code));
      x.out.code.add(*o.code, own);
    } else {
      for (std::uint32_t k = 0; k < o.begun; ++k) numbers.collectives.push_back(CollectiveId(begun.value + k));
      x.out.code.add(*o.code, picked(o.numbers, numbers));
    }
    x.out.collectives += o.begun;
  }

  const Program& p_;
  RegionKinds& kinds_;
  WorkTimes& times_;
  const Arrangement reach_;
  IdVector<ActorId, ActorTurns> actors_;
  IdVector<TransferId, std::optional<double>> arrives_;
  InOrder<TransferId> order_;
};

// That the program's actions run.
std::size_t tasks_of_rows(const Program& p) {
  std::size_t n = 0;
  for (const ActorProgram& a : p.actors) {
    IdVector<TurnCodeId, std::size_t> each;
    for (const TurnCode& kind : a.code.kinds())
      each.push_back(std::ranges::count_if(kind.instructions, [](const Instruction& i) {
        const Run* r = run_of(i);
        return r && r->action;
      }));
    for (const Turn& t : a.code.turns()) n += each[t.code];
  }
  return n;
}

}  // namespace

std::span<const Arrangement> arrangements(std::size_t tasks) {
  constexpr std::size_t most = 8'000;  // all ways of longer programs take two times as long as their whole compile
  static constexpr Arrangement of_short[] = {
      {}, {.weights = 8}, {.pairs = true, .weights = 8}, {.weights = 8, .unhurried = true}};
  static constexpr Arrangement of_long[] = {{.late = false}, {.late = false, .unhurried = true}};
  return tasks <= most ? std::span<const Arrangement>(of_short) : of_long;
}

Cluster unhurried(Cluster c) {
  c.machine = {};
  c.inside = c.between = {.latency = 2e-6, .bandwidth = 10e9};
  return c;
}

double rounded_lateness(double seconds) {
  int exponent = 0;
  const double mantissa = std::frexp(seconds, &exponent);
  return std::ldexp(std::round(mantissa * 32) / 32, exponent);
}

int overlap_calls(Program& p, const OverlapOptions& o) {
  if (p.ranks_per_actor() == 1) return 0;  // nobody to talk to
  const std::size_t tasks = o.apart ? std::numeric_limits<std::size_t>::max() : tasks_of_rows(p);
  WorkTimes hurried_times(p, o.cluster), unhurried_times(p, unhurried(o.cluster));
  RegionKinds kinds(p, o.apart);
  std::optional<IdVector<ActorId, ActorProgram>> best;  // with only code yet; none: as it is
  const std::optional<double> in_place = o.predicted(p);
  STRETTO_ASSERT(in_place, "a program waits forever before anything is moved in it");
  double least = *in_place;
  int ways = 1;
  const bool pairs = std::ranges::any_of(
      p.actors.ids(), [&](ActorId a) { return kinds.of(a, true).size() != kinds.of(a, false).size(); });
  for (const Arrangement& way : arrangements(tasks)) {
    ++ways;
    if (way.pairs && !pairs) continue;  // as another way has it
    IdVector<ActorId, ActorProgram> all =
        TurnOrder(p, kinds, way.unhurried ? unhurried_times : hurried_times, way).run();
    std::swap(p.actors, all);
    const std::optional<double> seconds = o.predicted(p);  // none where it was guessed wrongly what comes when
    std::swap(p.actors, all);
    if (seconds && *seconds < worth_arranging * least) best = std::move(all), least = *seconds;
  }
  if (best) p.actors = *std::move(best);
  return ways;
}

}  // namespace stretto

#include "stretto/program/overlap/overlap.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "stretto/program/overlap/recipe.h"
#include "stretto/program/overlap/side_by_side.h"
#include "stretto/program/overlap/turns.h"

namespace stretto {
namespace {

// Recipes serve turns of one kind with one answer to whether the next one talks, to which messages come equally late.
using RecipeKey = std::tuple<KindId, bool, std::map<RegionAt, double>>;

// All actors' turns one after the other, as they would happen: an actor's region is arranged when it is known at what
// time the messages that it receives come.
class Ensemble {
 public:
  Ensemble(const Program& p, Turns& turns, WorkTimes& times, const Arrangement& reach)
      : p_(p), turns_(turns), times_(times), reach_(reach), arrives_(p.transfers.size()) {
    for (ActorId a : p.actors.ids()) {
      voices_.push_back({.turns = &turns.of(a, reach.pairs)});
      voices_[a].out.collectives = p.actors[a].collectives;
      voices_[a].out.code.reserve(2 * p.actors[a].code.size());
    }
  }

  IdVector<ActorId, ActorProgram> run() {
    side_by_side(
        voices_, [&](ActorId a) { return comes(voices_[a]); }, [&](ActorId a) { sketch(a); },
        [&](ActorId a) { go_on(a); });
    IdVector<ActorId, ActorProgram> all;
    for (Voice& v : voices_) all.push_back(std::move(v.out));
    return all;
  }

 private:
  struct Voice {
    std::vector<Turn>* turns;
    std::size_t at = 0;
    std::vector<Instruction> left = {};    // of the turn before
    std::vector<Instruction> joined = {};  // that, and the turn at hand
    std::map<RecipeKey, Recipe> recipes = {};
    double time = 0;
    bool sketched = false;  // the turn at hand
    ActorProgram out = {};  // its code, and how many collectives it starts
    bool more() const { return at < turns->size(); }
    Turn& turn() const { return (*turns)[at]; }
  };

  // Is everything known that it receives?
  bool comes(const Voice& v) const {
    const Region r = v.turn().region;
    return std::all_of(r.begin(), r.end(), [&](const Instruction& i) {
      const std::optional<TransferId> t = received_by(i);
      return !t || arrives_[*t];
    });
  }
  void go_on(ActorId a) {
    Voice& v = voices_[a];
    const Passage passage = at_hand(a);
    const Recipe& recipe = recipe_for(v, passage);
    send(v, passage, recipe);
    follow(recipe, passage.region, v.out);
    v.time += recipe.seconds;
    ++v.at;
    v.sketched = false;
    v.left.clear();
    for (RegionAt at : recipe.left) v.left.push_back(passage.region[at.value]);
  }
  void sketch(ActorId a) {
    Voice& v = voices_[a];
    const Passage passage = at_hand(a);
    send(v, passage, recipe_for(v, passage));
    v.sketched = true;
  }
  Passage at_hand(ActorId a) {
    Voice& v = voices_[a];
    Passage passage{p_, a, v.turn().region};
    if (!v.left.empty()) {
      v.joined = v.left;
      v.joined.insert(v.joined.end(), passage.region.begin(), passage.region.end());
      passage.region = v.joined;
    }
    for (RegionAt at : ids_until<RegionAt>(passage.region.size()))
      if (const auto t = received_by(passage.region[at.value]))
        if (const double late = lateness(*t, v.time); late > 0) passage.late[at] = late;
    return passage;
  }
  // Gradients of other actors come with the last of what these do.
  double lateness(TransferId t, double now) const {
    constexpr double unknown = std::numeric_limits<double>::infinity();
    if (!reach_.late) return p_.transfers[t].value() ? 0 : unknown;
    return arrives_[t] ? rounded_lateness(std::max(0.0, *arrives_[t] - now)) : unknown;
  }
  const Recipe& recipe_for(Voice& v, const Passage& passage) {
    const bool leaves = v.at + 1 < v.turns->size() && (*v.turns)[v.at + 1].talks;
    std::optional<Turn> joined;
    if (!v.left.empty()) joined = turns_.turn(passage.region);
    Turn& turn = joined ? *joined : v.turn();
    const auto [it, fresh] = v.recipes.try_emplace({turns_.kind(passage.actor, turn), leaves, passage.late});
    if (fresh)
      it->second = turn.talks
                       ? recipe_of(passage, turns_.work(passage.actor, turn), times_, leaves ? reach_.weights : 0)
                       : as_it_stands(passage, times_);
    return it->second;
  }
  void send(const Voice& v, const Passage& passage, const Recipe& recipe) {
    for (const auto& [at, after] : recipe.sent) {
      const TransferId t = std::get<Send>(passage.region[at.value]).transfer;
      arrives_[t] = v.time + after + times_.message(p_.routes[p_.transfers[t].route]);
    }
  }

  const Program& p_;
  Turns& turns_;
  WorkTimes& times_;
  const Arrangement reach_;
  IdVector<ActorId, Voice> voices_;
  IdVector<TransferId, std::optional<double>> arrives_;
};

std::size_t tasks_of_rows(const Program& p) {
  std::size_t n = 0;
  for (const ActorProgram& a : p.actors)
    n += std::count_if(a.code.begin(), a.code.end(), [](const Instruction& i) {
      const Run* r = run_of(i);
      return r && r->action;
    });
  return n;
}

}  // namespace

std::span<const Arrangement> arrangements(std::size_t tasks) {
  constexpr std::size_t most = 8'000;  // all ways of longer programs take too long
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
  Turns turns(p, o.apart);
  std::optional<IdVector<ActorId, ActorProgram>> best;  // with only code yet; none: as it is
  const std::optional<double> in_place = o.predicted(p);
  STRETTO_ASSERT(in_place, "a program waits forever before anything is moved in it");
  double least = *in_place;
  int ways = 1;
  for (const Arrangement& way : arrangements(tasks)) {
    IdVector<ActorId, ActorProgram> all =
        Ensemble(p, turns, way.unhurried ? unhurried_times : hurried_times, way).run();
    std::swap(p.actors, all);
    const std::optional<double> seconds = o.predicted(p);  // none where it was guessed wrongly what comes when
    std::swap(p.actors, all);
    if (seconds && *seconds < worth_arranging * least) best = std::move(all), least = *seconds;
    ++ways;
  }
  if (best) p.actors = *std::move(best);
  return ways;
}

}  // namespace stretto

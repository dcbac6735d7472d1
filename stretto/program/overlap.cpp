#include "stretto/program/overlap.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "stretto/program/order.h"
#include "stretto/program/recipe.h"
#include "stretto/program/turns.h"

namespace stretto {
namespace {

// What of the neighbouring turns a turn's collectives may go on beside.
struct Reach {
  bool late = true;         // it is known when messages come: nearly every turn has a recipe of its own then
  bool pairs = false;       // regions_of
  std::size_t weights = 0;  // recipe_of: tasks that may be left to the next turn
};

// Recipes serve turns of one kind with one answer to whether the next one talks, to which messages come equally late.
using RecipeKey = std::tuple<KindId, bool, std::map<RegionAt, double>>;

struct Arranged {
  IdVector<ActorId, ActorProgram> actors;  // there is only code yet
  bool guessed = false;  // what some regions wait for; else they can be done one after the other, as they were arranged
};

// Nearly equal times have equal recipes.
double rounded(double seconds) {
  int exponent = 0;
  const double mantissa = std::frexp(seconds, &exponent);
  return std::ldexp(std::round(mantissa * 32) / 32, exponent);
}

// All actors' turns one after the other, as they would happen: an actor's region is arranged when it is known at what
// time the messages that it receives come.
class Ensemble {
 public:
  Ensemble(const Program& p, Turns& turns, WorkTimes& times, Reach reach)
      : p_(p), turns_(turns), times_(times), reach_(reach), arrives_(p.transfers.size()) {
    for (ActorId a : p.actors.ids()) {
      voices_.push_back({.turns = &turns.of(a, reach.pairs)});
      voices_[a].out.collectives = p.actors[a].collectives;
      voices_[a].out.code.reserve(2 * p.actors[a].code.size());
    }
  }

  Arranged run() {
    while (true) {
      bool moved = false;
      for (ActorId a : voices_.ids())
        while (voices_[a].more() && comes(voices_[a])) go_on(a), moved = true;
      if (moved) continue;
      // Regions that wait for each other: the one that is the furthest behind says when it would send if what it does
      // not know came last. When all have, it goes on like that.
      std::optional<ActorId> behind;
      const auto order = [&](ActorId a) { return std::pair(voices_[a].sketched, voices_[a].time); };
      for (ActorId a : voices_.ids())
        if (voices_[a].more() && (!behind || order(a) < order(*behind))) behind = a;
      if (!behind) break;
      guessed_ = true;
      if (voices_[*behind].sketched)
        go_on(*behind);
      else
        sketch(*behind);
    }
    Arranged all{.guessed = guessed_};
    for (Voice& v : voices_) all.actors.push_back(std::move(v.out));
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
    return arrives_[t] ? rounded(std::max(0.0, *arrives_[t] - now)) : unknown;
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
  const Reach reach_;
  IdVector<ActorId, Voice> voices_;
  IdVector<TransferId, std::optional<double>> arrives_;
  bool guessed_ = false;
};

// Kernels take long there and links are fast, so that little is put beside a collective. That is better where it is
// badly known when messages come.
Cluster unhurried(Cluster c) {
  c.machine = {};
  c.inside = c.between = {.latency = 2e-6, .bandwidth = 10e9};
  return c;
}

// What a step takes as arranged; none: it would wait forever.
std::optional<double> predicted(Program& p, Arranged& all, const OverlapOptions& o) {
  std::swap(p.actors, all.actors);
  std::optional<double> seconds;
  if (!all.guessed || play(p, [](ActorId, InstructionId, const Known&) {}).empty()) seconds = o.predicted(p);
  std::swap(p.actors, all.actors);
  return seconds;
}

}  // namespace

int overlap_calls(Program& p, const OverlapOptions& o) {
  if (p.ranks_per_actor() == 1) return 0;     // nobody to talk to
  constexpr double worth = 0.998;             // what goes on together takes memory
  constexpr std::size_t most_tried = 10'000;  // instructions; all ways of longer programs take too long
  std::size_t length = 0;
  for (const ActorProgram& a : p.actors) length += a.code.size();
  const bool tries = length <= most_tried && !o.apart;
  std::vector<Cluster> clusters{o.cluster};
  if (const Cluster other = unhurried(o.cluster); other != o.cluster) clusters.push_back(other);
  Turns turns(p, o.apart);
  std::optional<Arranged> best;  // none: as it is
  double least = o.predicted(p);
  int ways = 1;
  for (const Cluster& cluster : clusters) {
    WorkTimes times(p, cluster);
    std::size_t weights = 0;  // of the best so far
    const auto attempt = [&](Reach reach) {
      ++ways;
      Arranged all = Ensemble(p, turns, times, reach).run();
      const std::optional<double> seconds = predicted(p, all, o);
      if (seconds && *seconds < worth * least) best = std::move(all), least = *seconds, weights = reach.weights;
    };
    attempt({.late = tries});
    if (!tries) continue;
    for (std::size_t more : {1, 2, 4, 8}) attempt({.weights = more});
    attempt({.pairs = true, .weights = weights});
  }
  if (best) p.actors = std::move(best->actors);
  return ways;
}

}  // namespace stretto

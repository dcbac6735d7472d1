#include "stretto/program/overlap.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "stretto/program/order.h"
#include "stretto/program/recipe.h"

namespace stretto {
namespace {

// What of the neighbouring turns a turn's collectives may go on beside.
struct Reach {
  bool late = true;         // it is known when messages come: nearly every turn has a recipe of its own then
  bool pairs = false;       // regions_of
  std::size_t weights = 0;  // recipe_of: tasks that may be left to the next turn
};

struct Arranged {
  IdVector<ActorId, ActorProgram> actors;
  double seconds = 0;  // that the step takes, as predicted
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
  Ensemble(const Program& p, const WorkTimes& times, Reach reach)
      : p_(p), times_(times), reach_(reach), voices_(p.actors.size()), arrives_(p.transfers.size()) {
    for (ActorId a : p.actors.ids()) {
      voices_[a].regions = regions_of(p, a, reach.pairs);
      voices_[a].runs = started_runs(p.actors[a]);
      voices_[a].out = p.actors[a];
    }
  }

  Arranged run() {
    while (true) {
      bool moved = false;
      for (ActorId a : voices_.ids())
        while (voices_[a].more() && comes(voices_[a])) go_on(a), moved = true;
      if (moved) continue;
      // Regions that wait for each other: the one that is the furthest behind does not know when its messages come.
      std::optional<ActorId> behind;
      for (ActorId a : voices_.ids())
        if (voices_[a].more() && (!behind || voices_[a].time < voices_[*behind].time)) behind = a;
      if (!behind) break;
      go_on(*behind);
    }
    Arranged all;
    for (Voice& v : voices_) {
      v.out.code = std::move(v.code);
      all.actors.push_back(std::move(v.out));
      all.seconds = std::max(all.seconds, v.time);
    }
    return all;
  }

 private:
  struct Voice {
    std::vector<Region> regions;
    std::size_t at = 0;
    StartedRuns runs;
    std::vector<Instruction> left;  // of the region before
    std::map<std::vector<u64>, Recipe> recipes;
    double time = 0;
    ActorProgram out;
    IdVector<InstructionId, Instruction> code;
    bool more() const { return at < regions.size(); }
  };

  // Is everything known that it receives?
  bool comes(const Voice& v) const {
    const Region r = v.regions[v.at];
    return std::all_of(r.begin(), r.end(), [&](const Instruction& i) {
      const std::optional<TransferId> t = received_by(i);
      return !t || arrives_[*t];
    });
  }
  void go_on(ActorId a) {
    Voice& v = voices_[a];
    std::vector<Instruction> both = std::move(v.left);
    both.insert(both.end(), v.regions[v.at].begin(), v.regions[v.at].end());
    ++v.at;
    v.left.clear();
    Passage passage{p_, a, both, v.runs};
    for (RegionAt at : ids_until<RegionAt>(passage.region.size()))
      if (const auto t = received_by(passage.region[at.value]); t && reach_.late)
        if (const double late = arrives_[*t].value_or(0) - v.time; late > 0) passage.late[at] = rounded(late);
    if (talks(p_, passage.region)) {
      const bool leaves = v.more() && talks(p_, v.regions[v.at]);
      std::vector<u64> key = likeness(passage);
      key.push_back(leaves);
      const auto [it, fresh] = v.recipes.try_emplace(std::move(key));
      if (fresh) it->second = recipe_of(passage, times_, leaves ? reach_.weights : 0);
      play(v, passage, it->second);
      for (RegionAt at : it->second.left) v.left.push_back(both[at.value]);
    } else {
      play(v, passage, as_it_stands(passage, times_));
    }
  }
  void play(Voice& v, const Passage& passage, const Recipe& recipe) {
    for (const auto& [at, after] : recipe.sent) {
      const TransferId t = std::get<Send>(passage.region[at.value]).transfer;
      arrives_[t] = v.time + after + times_.link.seconds(double(p_.routes[p_.transfers[t].route].bytes));
    }
    v.time += recipe.seconds;
    follow(recipe, passage, v.out, v.code);
  }

  const Program& p_;
  const WorkTimes& times_;
  const Reach reach_;
  IdVector<ActorId, Voice> voices_;
  IdVector<TransferId, std::optional<double>> arrives_;
};

bool finishes(Program& p, Arranged& all) {
  std::swap(p.actors, all.actors);
  const bool faultless = play(p, [](ActorId, InstructionId, const Known&) {}).empty();
  std::swap(p.actors, all.actors);
  return faultless;
}

}  // namespace

int overlap_calls(Program& p, const WorkTimes& times) {
  if (p.ranks_per_actor() == 1) return 0;     // nobody to talk to
  constexpr double worth = 0.998;             // what is left to the next turn, or made together, takes memory
  constexpr std::size_t most_tried = 10'000;  // instructions; more ways than one of longer programs take too long
  std::size_t length = 0;
  for (const ActorProgram& a : p.actors) length += a.code.size();
  const bool tries = length <= most_tried && !times.apart;
  Reach reach{.late = tries};
  Arranged best = Ensemble(p, times, reach).run();
  int ways = 1;
  const auto attempt = [&](Reach wider) {
    ++ways;
    Arranged all = Ensemble(p, times, wider).run();
    if (all.seconds < worth * best.seconds && finishes(p, all)) best = std::move(all), reach = wider;
  };
  if (tries) {
    for (std::size_t weights : {1, 2, 4, 8}) attempt({.weights = weights});
    attempt({.pairs = true, .weights = reach.weights});
  }
  p.actors = std::move(best.actors);
  return ways;
}

}  // namespace stretto

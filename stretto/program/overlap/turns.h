// What all ways to arrange a program have in common, found once: the turns of its actors, which of them are alike, and
// what depends on what in them.
//
//   Turns turns(program, false);
//   for (Turn& t : turns.of(actor, false))
//     if (t.talks) recipe_of({program, actor, t.region}, turns.work(actor, t), times, 0);
#pragma once
#include <map>
#include <optional>
#include <vector>

#include "stretto/program/overlap/region.h"

namespace stretto {

using KindId = Id<struct KindTag>;  // of an actor's regions that have one likeness

struct Turn {
  Region region;
  bool talks = false;
  std::optional<KindId> kind = {};      // once it was asked for
  std::optional<RegionWork> work = {};  // ... and so is this
};

class Turns {
 public:
  Turns(const Program&, bool apart);  // work_of; the program's code must stay as it is

  std::vector<Turn>& of(ActorId, bool pairs);  // regions_of
  Turn turn(Region r) const { return {r, talks(p_, r)}; }
  KindId kind(ActorId, Turn&);
  RegionWork& work(ActorId, Turn&);

 private:
  struct Voice {
    StartedRuns runs = {};
    std::optional<std::vector<Turn>> turns = {}, pairs = {};
    std::map<std::vector<u64>, KindId> kinds = {};
  };
  const Program& p_;
  const bool apart_;
  CallFacts facts_;
  IdVector<ActorId, Voice> voices_;
};

}  // namespace stretto

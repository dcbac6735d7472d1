// Turns of all actors in an order in which they can happen: an actor goes on when it is known when the messages come
// that its turn receives.
//
//   side_by_side(voices, comes, sketch, go_on);      // each a function of an ActorId
//
// Turns may wait for each other: then the one that is the furthest behind says when it would send if what it does not
// know came last (`sketch`), and when all have, it goes on like that. A voice has `more()`, `time` and `sketched`.
#pragma once
#include <optional>
#include <utility>

#include "stretto/base/id.h"
#include "stretto/schedule/schedule.h"

namespace stretto {

template <class Voice, class Comes, class Sketch, class GoOn>
void side_by_side(IdVector<ActorId, Voice>& voices, Comes comes, Sketch sketch, GoOn go_on) {
  while (true) {
    bool moved = false;
    for (ActorId a : voices.ids())
      while (voices[a].more() && comes(a)) go_on(a), moved = true;
    if (moved) continue;
    std::optional<ActorId> behind;
    const auto order = [&](ActorId a) { return std::pair(voices[a].sketched, voices[a].time); };
    for (ActorId a : voices.ids())
      if (voices[a].more() && (!behind || order(a) < order(*behind))) behind = a;
    if (!behind) return;
    if (voices[*behind].sketched)
      go_on(*behind);
    else
      sketch(*behind);
  }
}

}  // namespace stretto

// The order of work that has to be done once some of it goes on by itself: list scheduling by predicted times.
//
//   const std::vector<Work> work = {{.seconds = 2},                                       // a product
//                                   {.seconds = 3, .link = 0, .after = {WorkId(0)}},      // a collective
//                                   {.seconds = 1, .after = {WorkId(1)}},                 // reads its result
//                                   {.seconds = 3}};                                      // anything else
//   interleave(work).order;                                                               // 0 1 3 2
//
// The actor does one thing after the other; a collective starts when its turn comes and goes on beside what follows,
// one after the other on its link. Next comes the work that can start earliest. Ties: what another actor waits for,
// then the earlier turn, then the longer chain of successors. The result depends on nothing but the argument, so all
// ranks of an actor get the same.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "stretto/base/id.h"

namespace stretto {

using WorkId = Id<struct WorkTag>;

struct Work {
  double seconds = 0;
  std::optional<std::uint32_t> link = {};  // a collective: goes on beside other work, on this link
  bool urgent = false;                     // another actor waits for it
  double then = 0;                         // how long that actor's collectives of it take
  std::vector<WorkId> after = {};          // all of which are earlier in the list
  double ready = 0;                        // a message: when it arrives
  std::uint32_t turn = 0;                  // the smaller the sooner, where nothing else decides
};

struct Interleaved {
  std::vector<WorkId> order;
  IdVector<WorkId, double> ends;  // when each is over; of a collective: when its result has arrived
  double seconds = 0;             // until the actor has nothing more to do; collectives may go on
};
Interleaved interleave(const IdVector<WorkId, Work>&);

}  // namespace stretto

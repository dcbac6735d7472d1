// How a value's blocks get from the axes that its dims lie on to those they are to lie on, as plain data: what happens
// to which dim, one step after the other. What costs nothing comes first.
//
//   Moves m = moves_between({{data}, {}}, {{}, {data}}, {}, Gather::now);     // one exchange: data goes to dim 1
#pragma once
#include <optional>
#include <vector>

#include "stretto/shard/inner/axes.h"

namespace stretto {

struct Move {
  enum class Kind : std::uint8_t {
    cut,       // every rank keeps its block: nothing is sent
    scatter,   // what was pending is added up, block by block
    exchange,  // one dim's blocks for another's
    gather,    // blocks are put together
    unblock,   // the block stands among zeros: a sum over the ranks, which is pending from now on, makes it whole
  };
  struct Change {
    std::size_t dim = 0;  // which of the value's
    AxisList lies_on;     // from now on
    bool operator==(const Change&) const = default;
  };
  Kind kind = Kind::cut;
  AxisList over;  // the axes that the dim gets (cut, scatter, exchange), or that it gives away
  Change change;
  std::optional<Change> from = {};  // exchange: the dim that gives the axes away
  bool in_vain = false;             // a gather of what is cut again, because no exchange could have it
  bool operator==(const Move&) const = default;
};

struct Moves {
  std::vector<Move> list;
  AxisSet pending;  // sums that are still to be made afterwards
};

enum class Gather : std::uint8_t { now, by_later_sums };  // the latter: only sums are made of the result

// Per dim of the value the axes it lies on and those it is to lie on. Pending axes that are wanted as blocks become
// scatters; any other stays pending.
Moves moves_between(std::vector<AxisList> now, const std::vector<AxisList>& goal, AxisSet pending, Gather);

}  // namespace stretto

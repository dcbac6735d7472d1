// A schedule as its program is arranged (program/overlap/overlap.h): the compiler's own list scheduling orders every
// turn, in the ways that the compiler tries, and then all turns are played with their messages and wires.
//
//   ArrangedPlayer player(stages, {.gathers = true}, links, message_bytes);
//   for (const Arrangement& way : arrangements(tasks)) PlayedEnds ends = player.ends(schedule, way);
#pragma once
#include <map>
#include <tuple>
#include <vector>

#include "stretto/plan/played_schedule.h"
#include "stretto/plan/row_turns.h"
#include "stretto/program/overlap/overlap.h"

namespace stretto {

// A turn as it is arranged.
struct TurnOrder {
  std::vector<WorkId> order;
  double seconds = 0;                                // as predicted when it was arranged
  std::vector<std::pair<std::size_t, double>> sent;  // by which action, how long after its beginning
  std::vector<PieceAt> left = {};                    // weight gradients that are left to the next turn
  std::vector<WorkId> left_work = {};                // the first call of each
  std::vector<char> in_place = {};                   // per work: a collective with nothing between start and await
};

// A turn with the order that was found for it.
struct ArrangedTurn {
  const RowTurn* turn;
  const TurnWork* work;
  const TurnOrder* order;
};
struct ArrangedRow {
  std::vector<RowTurn> turns = {};
  std::vector<ArrangedTurn> arranged = {};  // as many, once all are
};
using ArrangedRows = IdVector<ActorId, ArrangedRow>;

class ArrangedPlayer {
 public:
  // The pieces must outlive it.
  ArrangedPlayer(StagePieces, const TurnOptions&, ActorLinks, double message);

  PlayedEnds ends(const Schedule&, const std::optional<Arrangement>&);    // none: with all in place
  ArrangedRows rows(const Schedule&, const std::optional<Arrangement>&);  // not played; as long as the player is there

  const StagePieces& stages() const { return stages_; }
  const TurnOptions& options() const { return options_; }
  const ActorLinks& links() const { return links_; }
  double message() const { return message_; }
  const TurnWork& work_of(const TurnKey&);
  struct Surroundings {
    std::vector<double> late;  // per action: how long after its beginning its message comes
    std::size_t leaves = 0;    // so many tasks of weight gradients, at most, to the next turn
    auto operator<=>(const Surroundings&) const = default;
  };
  const TurnOrder& order_of(const TurnWork&, const Surroundings&, const std::optional<Arrangement>&);

 private:
  StagePieces stages_;
  TurnOptions options_;
  ActorLinks links_;
  double message_;
  std::map<TurnKey, TurnWork> works_;
  enum class By : std::uint8_t { place, hurried, unhurried };
  std::map<std::tuple<const TurnWork*, By, Surroundings>, TurnOrder> orders_;
};

}  // namespace stretto

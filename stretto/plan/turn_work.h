// A turn of an actor, an action with what stands beside it, as work that waits for other work: what a program has there
// (program/overlap/region.h), put together from the calls of pieces.
//
//   const TurnWork turn = turn_work({.actions = {{.phase = Phase::B, .stage = stage}}}, stages, {});
//   const Interleaved order = interleave(turn.work);
#pragma once
#include <optional>
#include <vector>

#include "stretto/plan/piece_work.h"
#include "stretto/program/overlap/interleave.h"
#include "stretto/schedule/schedule.h"

namespace stretto {

// A piece of a stage, with what its storage takes on its wires.
struct StagePiece {
  const PieceWork* work = nullptr;
  double gather = 0, gather_back = 0, scatter = 0, sums = 0;
};
using StagePieces = IdVector<StageId, std::vector<StagePiece>>;

struct TurnOptions {
  IdVector<StageId, Recompute> recompute = {};  // empty: none
  bool gathers = false, scatters = false;       // parameters are cut; whole gradients are scattered in every microbatch
  Recompute recompute_of(StageId s) const { return recompute.empty() ? Recompute::none : recompute[s]; }
};

struct PieceAt {
  StageId stage;
  int piece = 0;  // of the stage
  auto operator<=>(const PieceAt&) const = default;
};
struct PieceVisit {
  PieceAt at;
  bool back = false;  // gathered for backward only
  auto operator<=>(const PieceVisit&) const = default;
};

// Gathers and scatters go one after the other on a wire of their own, and so do sums of gradients.
constexpr std::uint32_t storage_link = 1000, gradients_link = 1001;

// An action of a turn, with everything its code depends on.
struct TurnAction {
  Phase phase = Phase::F;
  StageId stage = {};
  int microbatch = 0;  // as they appear in the turn, from 0 on
  bool receives = false, sends = false;
  bool alternates = false;  // the W of a piece right after its I
  bool completes = false;   // gradients of the stage are summed after it
  int turn = 0;             // 0 or 1: first or second of a pair
  auto operator<=>(const TurnAction&) const = default;
};
// Turns with equal keys have equal work.
struct TurnKey {
  std::vector<TurnAction> actions;
  std::vector<PieceAt> left = {};         // weight gradients that the turn before has left to it
  std::optional<PieceAt> visited = {};    // whose parameters are whole when it begins
  std::optional<PieceVisit> next = {};    // whose parameters are read after it
  std::optional<PieceAt> scattered = {};  // whose gradients are on their way when it begins
  auto operator<=>(const TurnKey&) const = default;
};

struct TurnItem {
  enum class Kind : std::uint8_t { call, receive, send, gather, scatter, sum } kind = Kind::call;
  std::size_t action = 0;   // of the key
  double unhurried = 0;     // seconds
  bool of_gather = false;   // waits for parameters whose gather the turn before has started
  bool of_scatter = false;  // waits for gradients that the turn before has sent off
  // Which call of which task; of a gather or a scatter whose.
  PieceAt at = {};
  Part part = Part::F;
  std::uint32_t call = 0;
  std::optional<std::size_t> left = {};  // the turn before has left it to this one: where in the key
  std::optional<WorkId> scatter = {};    // of an A: what it adds up; none: what `of_scatter` says
};
struct TurnWeights {  // a W task
  PieceAt piece;
  WorkId first;
  std::uint32_t calls = 0;
  bool sent = false;                 // its gradients are scattered or summed
  std::vector<WorkId> waiting = {};  // what comes after it
};
struct TurnWork {
  IdVector<WorkId, Work> work;
  IdVector<WorkId, TurnItem> items;
  std::vector<WorkId> order;                        // as it is written down
  std::vector<TurnWeights> weights;                 // in the same order
  std::optional<WorkId> gather = {}, scatter = {};  // the last ones that it starts
  // Scatters and sums that nothing of the turn follows start when it is over (program/overlap/region.h).
  std::optional<double> last_scatter = {};
  double last_sums = 0;
  std::optional<PieceAt> visited = {}, scattered = {};  // as in the key, when it ends
  std::size_t scattered_by = 0;                         // by which action
  bool talks = false;                                   // its tasks have collectives
};

TurnWork turn_work(const TurnKey&, const StagePieces&, const TurnOptions&);

// Whose parameters a turn reads, one after the other, beyond those that are whole when it begins.
std::vector<PieceVisit> visits_of(const TurnKey&, const StagePieces&, const TurnOptions&);

}  // namespace stretto

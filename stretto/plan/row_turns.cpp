#include "stretto/plan/row_turns.h"

#include <algorithm>
#include <map>

#include "stretto/program/overlap/region.h"

namespace stretto {
namespace {

class RowReader {
 public:
  RowReader(const Schedule& s, ActorId actor, const StagePieces& stages, const TurnOptions& o)
      : s_(s), actor_(actor), row_(s.rows[actor]), stages_(stages), o_(o) {
    for (std::size_t i = 0; i < row_.size(); ++i)
      if (row_[i].phase == Phase::B || row_[i].phase == Phase::W) last_[row_[i].stage] = i;
  }

  std::vector<RowTurn> run(bool pairs) {
    bool pair = false;
    const Action* first = nullptr;  // of the turn at hand
    for (std::size_t i = 0; i < row_.size(); ++i) {
      if (turn_of(row_, ActionId(i)).value == i) {
        pair = pairs && !pair && first && go_together(*first, row_[i]) && o_.recompute.empty();
        first = &row_[i];
        if (!pair) turns_.push_back({}), seen_.clear();
      }
      add(i, pair);
    }
    if (o_.gathers) add_visits();
    if (o_.scatters) add_scattered();
    return std::move(turns_);
  }

 private:
  void add(std::size_t i, bool pair) {
    const Action& a = row_[i];
    auto known = std::find(seen_.begin(), seen_.end(), a.microbatch);
    if (known == seen_.end()) known = seen_.insert(known, a.microbatch);
    const ActionMessages messages = messages_of(a);
    const auto& pieces = stages_[a.stage];
    const bool sums = std::any_of(pieces.begin(), pieces.end(), [](const StagePiece& p) { return p.sums > 0; });
    const bool completes = sums && last_.contains(a.stage) && last_[a.stage] == i;
    const bool sends = messages.out.has_value();
    RowTurn& t = turns_.back();
    t.key.actions.push_back({.phase = a.phase,
                             .stage = a.stage,
                             .microbatch = int(known - seen_.begin()),
                             .receives = messages.in.has_value(),
                             .sends = sends,
                             .alternates = (completes && !sends) || o_.recompute_of(a.stage) == Recompute::layer,
                             .completes = completes,
                             .turn = pair});
    t.messages.push_back(messages);
    t.microbatches.push_back(a.microbatch);
  }
  // An embedding has no I: where it is a stage of its own, its W gets the message.
  bool has_i(StageId s) const {
    const auto& pieces = stages_[s];
    return std::any_of(pieces.begin(), pieces.end(),
                       [](const StagePiece& p) { return !(*p.work)[Part::I].calls.empty(); });
  }
  ActionMessages messages_of(const Action& a) const {
    const int up = a.phase == Phase::F ? 1 : -1;
    const bool apart = a.phase == Phase::I || a.phase == Phase::W;
    if (apart ? (a.phase == Phase::I) != has_i(a.stage) : a.phase != Phase::F && a.phase != Phase::B) return {};
    ActionMessages m;
    if (const auto from = other(a, -up)) m.in = id_of(a, StageId(a.stage.value - up));
    if (const auto to = other(a, up)) m.out = SentTo{id_of(a, a.stage), *to};
    return m;
  }
  // The actor of a neighbouring stage, if it is another one.
  std::optional<ActorId> other(const Action& a, int up) const {
    const int stage = a.stage.value + up;
    if (stage < 0 || stage >= s_.stages || s_.actor_of[a.pipe][StageId(stage)] == actor_) return std::nullopt;
    return s_.actor_of[a.pipe][StageId(stage)];
  }
  StageMessageId id_of(const Action& a, StageId from) const {
    const std::size_t way = 2 * a.pipe.value + (a.phase == Phase::F ? 0 : 1);
    return StageMessageId((way * s_.stages + from.value) * s_.microbatches + a.microbatch.value);
  }

  void add_visits() {
    std::optional<PieceAt> visited;
    for (RowTurn& t : turns_) {
      t.key.visited = visited;
      for (const PieceVisit& v : visits_of(t.key, stages_, o_)) visited = v.at;
    }
    std::optional<PieceVisit> next;
    for (std::size_t i = turns_.size(); i-- > 0;) {
      turns_[i].key.next = next;
      if (const auto visits = visits_of(turns_[i].key, stages_, o_); !visits.empty()) next = visits.front();
    }
  }
  void add_scattered() {
    std::optional<PieceAt> scattered;
    for (RowTurn& t : turns_) {
      t.key.scattered = scattered;
      for (const TurnAction& a : t.key.actions)
        if (a.phase == Phase::B || a.phase == Phase::W) scattered = PieceAt{a.stage, 0};
    }
  }

  const Schedule& s_;
  const ActorId actor_;
  const Row& row_;
  const StagePieces& stages_;
  const TurnOptions& o_;
  std::map<StageId, std::size_t> last_;  // the action after which a stage's gradients are complete
  std::vector<MicrobatchId> seen_;       // in the turn at hand
  std::vector<RowTurn> turns_;
};

}  // namespace

std::vector<RowTurn> turns_of(const Schedule& s, ActorId actor, const StagePieces& stages, const TurnOptions& o,
                              bool pairs) {
  return RowReader(s, actor, stages, o).run(pairs);
}

std::size_t message_count(const Schedule& s) { return std::size_t(2) * s.pipes() * s.stages * s.microbatches; }

}  // namespace stretto

// Pieces by hand, whose seconds say which call of which task they are of.
#pragma once
#include <deque>
#include <map>
#include <string>

#include "stretto/plan/turn_work.h"

namespace stretto::test {

inline const std::map<Part, int>& numbered_parts() {
  static const std::map<Part, int> all{{Part::F, 1}, {Part::R, 2}, {Part::I, 3}, {Part::W, 4}, {Part::A, 5}};
  return all;
}
// Of every task so many calls, one after the other. The first comes after what the piece before it gives, and if it is
// of a W, after its own I, too.
inline PieceWork numbered_piece(int piece, int calls = 1) {
  PieceWork work;
  for (const auto& [part, number] : numbered_parts()) {
    PartWork& all = work[part];
    for (int c = 0; c < calls; ++c) {
      PieceCall call{.seconds = 100.0 * number + 10 * piece + c, .unhurried = 1};
      if (c > 0) call.after.push_back({part, all.gives});
      if (c == 0 && part == Part::W) call.after.push_back({Part::I, 0});
      call.chained = c == 0 && part != Part::A && part != Part::W;
      call.gathered = c == 0 && (part == Part::F || part == Part::I);
      all.gives = all.calls.size();
      all.calls.push_back(call);
    }
    all.at_end = calls;
  }
  return work;
}
// Stages of such pieces, numbered from 0 on in each stage.
struct NumberedStages {
  std::deque<PieceWork> works = {};
  StagePieces stages = {};
  explicit NumberedStages(const std::vector<int>& pieces, int calls = 1) {
    for (const int n : pieces) {
      std::vector<StagePiece>& stage = stages[stages.push_back({})];
      for (int q = 0; q < n; ++q)
        stage.push_back({&works.emplace_back(numbered_piece(q, calls)), 1000.0 + q, 2000.0 + q, 3000.0 + q, 0});
    }
  }
  NumberedStages(const NumberedStages&) = delete;
};

// "I1": of piece 1; "I1.1": its second call; "W0'": of the turn's second action; "gather1", "back1", "send".
inline std::string name_of(const TurnWork& t, WorkId id) {
  const TurnItem& item = t.items[id];
  const std::string by(item.action, '\'');
  using Kind = TurnItem::Kind;
  if (item.kind == Kind::receive) return "receive" + by;
  if (item.kind == Kind::send) return "send" + by;
  if (item.kind == Kind::sum) return "sum" + by;
  const int number = t.work[id].seconds, piece = number / 10 % 10, call = number % 10;
  if (item.kind == Kind::scatter) return "scatter" + std::to_string(call) + by;
  if (item.kind == Kind::gather) return (number >= 2000 ? "back" : "gather") + std::to_string(call) + by;
  std::string name(1, " FRIWA"[number / 100]);
  name += std::to_string(piece);
  return (call > 0 ? name + "." + std::to_string(call) : name) + by;
}
inline std::vector<std::string> names_of(const TurnWork& t, const std::vector<WorkId>& list) {
  std::vector<std::string> all;
  for (WorkId id : list) all.push_back(name_of(t, id));
  return all;
}
inline std::vector<std::string> order_of(const TurnWork& t) { return names_of(t, t.order); }
// The last of that name.
inline WorkId work_named(const TurnWork& t, const std::string& name) {
  std::optional<WorkId> found;
  for (WorkId id : t.work.ids())
    if (name_of(t, id) == name) found = id;
  return found.value();
}
inline std::vector<std::string> before(const TurnWork& t, const std::string& name) {
  return names_of(t, t.work[work_named(t, name)].after);
}

}  // namespace stretto::test

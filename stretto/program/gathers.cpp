#include "stretto/program/gathers.h"

#include <algorithm>
#include <map>

#include "stretto/stage/storage.h"

namespace stretto {
namespace {

// The time for which a piece's parameters are whole.
struct Visit {
  std::uint16_t piece = 0;
  std::size_t first = 0;  // instruction that needs them first
  bool backward = true;   // only backward reads them
};

std::vector<Visit> visits_of(const Program& p, const std::vector<Instruction>& code, Reshard reshard) {
  const Step& s = *p.step;
  std::vector<Visit> visits;
  std::map<std::uint16_t, std::size_t> known;  // per piece: its newest visit
  std::uint16_t before = 0;
  for (std::size_t i = 0; i < code.size(); ++i) {
    const Run* r = std::get_if<Run>(&code[i]);
    if (!r) continue;
    const Task& t = s.tasks[r->task];
    const auto needs = [&](const Binding& b) { return b.place == Place::value && gathered(s, b.index); };
    if (std::none_of(t.inputs.begin(), t.inputs.end(), needs)) continue;
    const auto it = known.find(t.piece);
    const bool stays = it != known.end() && (reshard == Reshard::step || before == t.piece);
    if (!stays) {
      known[t.piece] = visits.size();
      visits.push_back({.piece = t.piece, .first = i});
    }
    Visit& visit = visits[known[t.piece]];
    visit.backward = visit.backward && t.part != Part::F;
    before = t.piece;
  }
  return visits;
}

}  // namespace

void place_gathers(Program& p, int actor, Reshard reshard) {
  const Step& s = *p.step;
  std::vector<Instruction>& code = p.actors[std::size_t(actor)].code;
  const std::vector<Visit> visits = visits_of(p, code, reshard);
  if (visits.empty()) return;
  std::map<std::pair<std::uint16_t, Gathered>, std::uint32_t> task_of_piece;
  for (std::uint32_t t = 0; t < s.tasks.size(); ++t)
    if (s.tasks[t].part == Part::U) task_of_piece[{s.tasks[t].piece, Gathered(s.tasks[t].subject)}] = t;
  std::uint32_t numbers = 0;
  for (const Instruction& i : code) numbers += std::holds_alternative<Start>(i);
  std::vector<Instruction> out;
  const auto task = [&](const Visit& v) {
    const auto less = task_of_piece.find({v.piece, Gathered::backward});
    return v.backward && less != task_of_piece.end() ? less->second : task_of_piece.at({v.piece, Gathered::whole});
  };
  const auto start = [&](std::size_t v) {
    if (v >= visits.size()) return;
    Run run = std::get<Run>(code[visits[v].first]);
    run.task = task(visits[v]);
    out.push_back(Start{run, numbers + std::uint32_t(v)});
  };
  start(0);
  for (std::size_t i = 0, v = 0; i < code.size(); ++i) {
    if (v < visits.size() && visits[v].first == i) {
      out.push_back(Await{numbers + std::uint32_t(v), task(visits[v])});
      start(++v);
    }
    out.push_back(code[i]);
  }
  code = std::move(out);
}

}  // namespace stretto

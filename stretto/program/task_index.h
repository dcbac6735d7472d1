// A step's tasks by what they are: by part and piece, and per step in the order they stand in.
#pragma once
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "stretto/stage/task.h"

namespace stretto {

struct TaskIndex {
  explicit TaskIndex(const Step& s) : by_piece(6, std::vector<int>(std::size_t(s.pieces), -1)) {
    for (std::uint32_t t = 0; t < s.tasks.size(); ++t) {
      const Part part = s.tasks[t].part;
      if (part == Part::U) continue;  // placed when all else stands (gathers.h)
      if (part == Part::carry)
        carries[{s.tasks[t].piece, s.tasks[t].subject}] = t;
      else if (part == Part::S && s.tasks[t].inputs[0].place == Place::gradient)
        step_scatters.push_back(t);
      else if (part >= Part::F && part <= Part::A)
        by_piece[std::size_t(part) - std::size_t(Part::F)][s.tasks[t].piece] = int(t);
      else if (part == Part::count)
        counts.push_back(t);
      else if (part == Part::scale)
        scales.push_back(t);
      else if (part == Part::total)
        (s.outputs[s.tasks[t].subject].count ? count_totals : totals).push_back(t);
      else
        epilogue.push_back(t);
    }
  }
  int at(Part part, int piece) const { return by_piece[std::size_t(part) - std::size_t(Part::F)][std::size_t(piece)]; }
  std::vector<std::vector<int>> by_piece;
  std::map<std::pair<int, std::uint32_t>, std::uint32_t> carries;  // by piece and level
  std::vector<std::uint32_t> counts, count_totals, scales, totals, epilogue;
  std::vector<std::uint32_t> step_scatters;  // of accumulators, once per step
};

}  // namespace stretto

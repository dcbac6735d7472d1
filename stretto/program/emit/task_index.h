// Finds a step's tasks: by part and piece, and those that run once per step in their order.
//
//   TaskIndex index(step);
//   if (std::optional<TaskId> t = index.at(Part::W, piece)) run(*t);
#pragma once
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "stretto/step/step.h"

namespace stretto {

struct TaskIndex {
  explicit TaskIndex(const Step&);
  std::optional<TaskId> at(Part part, PieceId piece) const {
    const auto it = of_piece.find(part);
    return it == of_piece.end() ? std::nullopt : it->second[piece];
  }

  // F, R, I, W, S, A; not U, which is placed last (gathers.h).
  std::map<Part, IdVector<PieceId, std::optional<TaskId>>> of_piece;
  std::map<std::pair<PieceId, Level>, TaskId> carries;
  std::vector<TaskId> counts, count_totals, scales, totals;
  std::vector<TaskId> scatters;  // of accumulators, once per step
  std::map<Part, std::vector<TaskId>> epilogue;
  IdVector<BucketId, TaskId> sum_of;
  std::map<ParamId, TaskId> norm_of;
};

}  // namespace stretto

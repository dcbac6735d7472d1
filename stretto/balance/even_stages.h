// Which pieces a stage takes: the longest stage as short as any cut of the pieces allows, the others as even as that
// leaves room for.
//
//   std::vector<int> stages = even_stages(piece_seconds, 8);     // pieces per stage
#pragma once
#include <limits>
#include <vector>

namespace stretto {

// At least as many pieces as stages.
std::vector<int> even_stages(const std::vector<double>& seconds, int stages);

// A stage by itself: what pieces take there, and how many of them it may have.
struct StageRoom {
  const std::vector<double>* seconds = nullptr;
  int most = std::numeric_limits<int>::max();
};
// Empty: the pieces are more than the stages may have.
std::vector<int> even_stages(const std::vector<StageRoom>&);

}  // namespace stretto

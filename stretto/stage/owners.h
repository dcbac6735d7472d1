// Which task makes a value for which reader: the rules of phases and of recompute, on the step's whole graph.
//
//   Owners owners(step_graph, options);
//   std::uint32_t maker = owners.of(value, reader);      // reader itself: the value is made there
//
// Tasks are numbered: 0 counts; then F, R, I, W of every piece, ascending.
#pragma once
#include <cstdint>
#include <vector>

#include "stretto/ir/op.h"
#include "stretto/stage/split.h"

namespace stretto {

class Owners {
 public:
  Owners(const StepGraph&, const SplitOptions&);

  static constexpr std::uint32_t counts = 0;
  std::uint32_t tasks() const { return 1 + 4 * pieces_; }
  std::uint32_t task(Part part, std::uint32_t piece) const {
    return 1 + 4 * piece + std::uint32_t(part) - std::uint32_t(Part::F);
  }
  Part part(std::uint32_t task) const {
    return task == counts ? Part::count : Part(std::uint32_t(Part::F) + (task - 1) % 4);
  }
  std::uint16_t piece(std::uint32_t task) const {
    return task == counts ? std::uint16_t(0) : std::uint16_t((task - 1) / 4);
  }
  int pieces() const { return int(pieces_); }

  // Sources are arguments of whoever reads them. Values that depend on inputs and constants only, and views, are made
  // by every reader. The others have an owner.
  bool source(Value v) const;
  bool everywhere(Value v) const { return free_[v.node.value] || g_.node(v).op->view; }
  bool free(Value v) const { return free_[v.node.value]; }
  std::uint32_t of(Value v, std::uint32_t reader) const;

 private:
  void find_kept();
  bool costly(Value v) const;
  Recompute mode(std::uint16_t piece) const {
    return options_.recompute.empty() ? Recompute::none : options_.recompute[piece];
  }
  int stage(std::uint16_t piece) const { return options_.stage_of.empty() ? 0 : options_.stage_of[piece]; }

  const Graph& g_;
  const SplitOptions& options_;
  std::uint32_t pieces_ = 1;
  std::vector<char> free_;               // depends on inputs and constants only
  std::vector<char> activation_;         // depends on the batch
  std::vector<char> inner_;              // backward: a lower piece needs it, directly or not
  std::vector<std::vector<char>> kept_;  // forward, per result: F keeps it under selective recompute
};

}  // namespace stretto

// Which task makes a value for which reader: the rules of phases and of recompute, on the step's whole graph.
//
//   Owners owners(step_graph, options);
//   MakerId maker = owners.of(value, reader);      // the reader itself: it makes the value
#pragma once
#include <cstdint>
#include <vector>

#include "stretto/base/id.h"
#include "stretto/ir/op.h"
#include "stretto/step/split.h"

namespace stretto {

// A task that may exist: the one that makes counts, then F, R, I and W of every piece in ascending order.
using MakerId = Id<struct MakerTag>;

class Owners {
 public:
  Owners(const StepGraph&, const SplitOptions&);

  static constexpr MakerId counts{0};
  auto makers() const { return ids_until<MakerId>(1 + phases * pieces_); }
  MakerId maker(Part part, PieceId piece) const { return MakerId(1 + phases * piece.value + phase(part)); }
  Part part(MakerId m) const {
    static constexpr Part of_piece[] = {Part::F, Part::R, Part::I, Part::W};
    return m == counts ? Part::count : of_piece[(m.value - 1) % phases];
  }
  PieceId piece(MakerId m) const { return PieceId(m == counts ? 0 : (m.value - 1) / phases); }
  std::size_t pieces() const { return pieces_; }

  // Sources are arguments of every task that reads them. Values that depend on inputs and constants only, views, what
  // is put together of several pieces' values, and parameters in another type are made by every reader: nothing of them
  // is kept. All others have an owner.
  bool source(Value v) const;
  bool everywhere(Value v) const {
    return free_[v.node] || g_.node(v).op->view || retyped_[v.node] || put_together_[v.node];
  }
  bool free(Value v) const { return free_[v.node]; }
  MakerId of(Value v, MakerId reader) const;

 private:
  static constexpr std::size_t phases = 4;
  static constexpr std::size_t phase(Part p) { return p == Part::F ? 0 : p == Part::R ? 1 : p == Part::I ? 2 : 3; }
  void find_inner();
  void find_kept();
  bool costly(Value v) const;
  bool has_several_pieces(const Node&) const;
  Recompute mode(PieceId piece) const {
    return options_.recompute.empty() ? Recompute::none : options_.recompute[piece];
  }
  StageId stage(PieceId piece) const { return options_.stage_of.empty() ? StageId(0) : options_.stage_of[piece]; }

  const Graph& g_;
  int segment(PieceId piece) const { return piece.value % segments_; }

  const SplitOptions& options_;
  int segments_ = 1;
  std::size_t pieces_ = 1;
  IdVector<NodeId, char> free_;               // depends on inputs and constants only
  IdVector<NodeId, char> retyped_;            // a parameter, or a view of one, in another type
  IdVector<NodeId, char> put_together_;       // forward: of values of several pieces
  IdVector<NodeId, char> activation_;         // depends on the batch
  IdVector<NodeId, char> inner_;              // backward: a lower piece needs it, directly or not
  IdVector<NodeId, std::vector<char>> kept_;  // forward, per result: F keeps it under selective recompute
};

}  // namespace stretto

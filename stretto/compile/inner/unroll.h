// Sequences cut into segments, each of which goes through the model on its own, after the one before it:
//
//   Unroll unrolled(graph, "seq", {128, 128, 256});
//   value = unrolled(value), graph = std::move(unrolled).graph();
//
//   h = norm(x)                      h0 = norm(x0)   h1 = norm(x1)   ...       once per segment
//   a = attention(q, k, v)    ->     a0 = attention(q0, k0, v0), a1 = attention(q1, concat(k0, k1), ...), ...
//   s = sum(x, seq)                  s = sum(x0) + sum(x1) + ...               where the dim is reduced
//
// What an op's entry says about the dim decides (Op::spread, Op::looks_back); an op that mixes positions otherwise is
// refused. What depends on inputs or on parameters alone stays whole, and every segment reads its part of it. What lies
// between two boundaries is a piece per segment then: piece p becomes the pieces p * n to p * n + n - 1. Values only
// go to later pieces, so that tasks, gradients and messages follow as for any other pieces.
#pragma once
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "stretto/ir/op.h"
#include "stretto/trace/trace.h"

namespace stretto {

// In tokens. They must be those of the dim, without padding.
std::vector<i64> sizes_of(const SegmentSizes&, const Graph&, std::string_view dim);

class Unroll {
 public:
  Unroll(const Graph&, std::string_view dim, const std::vector<i64>& sizes);
  Value operator()(Value old);  // all of it, however many segments it has
  Graph graph() && { return std::move(b_.graph); }

 private:
  // What an old value has become.
  struct Made {
    std::vector<Value> parts = {};  // one: it is whole; else one per segment
    bool late = false;              // made of all segments
    bool alike = false;             // has no positions: all parts are the same
  };

  int segments() const { return int(sizes_.size()); }
  Made& made(Value v) { return made_[v.node][v.result]; }
  bool along(DimId d) const { return along_[d.value]; }
  DimSet positions(const DimSet&) const;  // the dims among them that are cut
  std::uint16_t piece(const Node& n, int segment) const { return std::uint16_t(n.piece * segments() + segment); }

  void find_activations();
  void step(NodeId);
  void in_segments(NodeId, const DimSet& space);
  void check(NodeId, const DimSet& space, const std::optional<LooksBack>&) const;
  [[noreturn]] void refuse(NodeId, std::string_view why) const;

  Dim of_one(DimId, std::string_view suffix) const;
  DimId part(DimId, int segment);      // the segment's dim
  DimId up_to(DimId, int segment);     // what the segment and those before it have
  DimId whole(DimId);                  // all of it, never split
  Dim whole_part(DimId, int segment);  // the segment's, never split

  Value emit(const Node&, const std::vector<Value>& operands, const DimNames&, std::uint16_t piece);
  Tensor tensor(Value v) { return {&b_, v}; }
  void stand_at(const Node& n, int segment);
  Value read(Value old, int segment);              // as a segment's operand
  Value seen(Value old, DimId over, int segment);  // the parts up to the segment's
  Value cut(Value old, DimId along, int segment);  // the segment's part of what is whole
  Value joined(Value old);
  Value added(NodeId, const std::vector<Value>& parts, Reduce);

  const Graph& g_;
  const std::vector<i64> sizes_;
  std::vector<i64> starts_;
  std::vector<char> along_;            // by dim: made of the one that is cut
  IdVector<NodeId, char> activation_;  // depends on inputs and on parameters
  IdVector<NodeId, std::vector<Made>> made_;
  std::map<std::pair<Value, int>, Value> cuts_, seen_;
  Builder b_;
};

}  // namespace stretto

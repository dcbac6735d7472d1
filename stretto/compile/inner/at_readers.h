// What is made of parameters alone (a renamed weight, a product of two) belongs to the pieces that read it, as a
// parameter does: each makes it for itself, and its gradient stays there. Tracing puts it into the first piece, since
// parameters belong to none.
//
//   AtReaders moved(graph);
//   if (moved.needed()) value = moved(value), graph = std::move(moved).graph();
#pragma once
#include <map>
#include <optional>
#include <utility>

#include "stretto/ir/graph.h"

namespace stretto {

class AtReaders {
 public:
  explicit AtReaders(const Graph&);
  bool needed() const { return needed_; }  // false: every value may stay where it is
  Value operator()(Value old);             // a value that is an output is made where its parameters are first read
  Graph graph() && { return std::move(out_); }

 private:
  void find_derived();
  void find_homes();
  PieceId home(NodeId id) const { return home_[id].value(); }
  Value local(Value, PieceId);

  const Graph& g_;
  bool needed_ = false;
  IdVector<NodeId, char> derived_;                 // made of parameters alone
  IdVector<NodeId, std::optional<PieceId>> home_;  // the first piece that reads it, also through derived values
  std::map<std::pair<NodeId, PieceId>, NodeId> made_;
  IdVector<NodeId, NodeId> moved_;
  Graph out_;
};

}  // namespace stretto

// What is made of parameters alone (a renamed weight, a product of two) belongs to the pieces that read it, as a
// parameter does: each makes it for itself, and its gradient stays there. Tracing puts it into the first piece, since
// parameters belong to none.
//
//   AtReaders moved(graph);
//   if (moved.needed()) value = moved(value), graph = moved.graph();
#pragma once
#include <map>
#include <utility>
#include <vector>

#include "stretto/ir/graph.h"

namespace stretto {

class AtReaders {
 public:
  explicit AtReaders(const Graph&);
  bool needed() const { return needed_; }  // else every value may stay as it is
  Value operator()(Value old);             // asked for itself, a value is made where its parameters are read first
  Graph graph() && { return std::move(out_); }

 private:
  bool derived(Value v) const { return derived_[v.node.value]; }
  int reading_piece(const Node&) const;
  Value local(Value, int piece);

  const Graph& g_;
  bool needed_ = false;
  std::vector<char> derived_;  // per node: made of parameters alone
  std::vector<int> home_;      // per node: the first piece that reads it, through what is derived
  std::map<std::pair<std::uint32_t, int>, NodeId> made_;  // (node, piece)
  std::vector<NodeId> moved_;
  Graph out_;
};

}  // namespace stretto

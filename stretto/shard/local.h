// The graph of one rank while it is being made: local dims, and every collective with its cause.
#pragma once
#include <string>
#include <vector>

#include "stretto/ir/op.h"
#include "stretto/shard/axes.h"
#include "stretto/shard/shard.h"

namespace stretto {

class LocalGraph {
 public:
  LocalGraph(const Graph& logical, DimAxes axes, Sharded& to);

  // From now on nodes are made for this one: its scope, piece and phase.
  void stand_at(const Graph& logical, const Node&);
  void stand_at(std::uint32_t scope, std::uint16_t piece, bool backward);

  Tensor reduce(Tensor x, AxisMask over, Reduce how, const std::string& cause);
  // The value under the names `to`, which may be split otherwise. What was pending and is wanted as blocks becomes a
  // reduce-scatter; any other pending axis stays so. Blocks go, in this order: cut (free), reduce-scatter, all-to-all,
  // all-gather.
  // `summed_later`: only sums are made of the result, so that a gather can wait for them.
  Tensor rename(Tensor x, const DimSet& to, AxisMask& pending, const std::string& cause, bool summed_later = false);
  // x on the first rank along the axes, zeros on the others: what is whole becomes a pending sum.
  Tensor only_first(Tensor x, AxisMask axes);

  // Flat storage of `elements` over axes, padded to a multiple of `blocks`, so that a block over more axes lies within
  // one over fewer. One name per size and axes: equal layers stay equal.
  DimId flat_dim(i64 elements, const std::vector<int>& axes, i64 blocks);
  Tensor gather_flat(Tensor block, const Type& to, const std::vector<int>& axes, const std::string& cause);
  Tensor scatter_flat(Tensor x, DimId flat, AxisMask& pending, const std::string& cause);

  i64 elements(const Type& t) const { return builder.graph.elements(t); }
  DimAxes axes;
  Builder builder;
  bool gathered = false;  // set by rename when it had to gather

 private:
  Tensor record(Tensor made, const std::vector<int>& over, const std::string& cause);
  DimId dim_with(DimId like, std::vector<int> over);  // the same dim split in another way, on its way to another name
  Tensor step_aside(Tensor x, DimSet& at, const DimSet& to);
  std::vector<int> list(AxisMask m) const;
  Sharded& to_;
};

}  // namespace stretto

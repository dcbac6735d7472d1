// The graph of one rank while it is being made: local dims, and every collective with its cause.
//
//   LocalGraph local(logical, resolve(logical.dims, mesh, layout, faults));
//   local.stand_at(node);
//   Tensor total = local.reduce(part, over, Reduce::sum, "h.0/contract");      // listed in local.collectives
#pragma once
#include <string>
#include <vector>

#include "stretto/ir/op.h"
#include "stretto/shard/inner/axes.h"
#include "stretto/shard/inner/moves.h"
#include "stretto/shard/shard.h"

namespace stretto {

class LocalGraph {
 public:
  LocalGraph(const Graph& logical, DimAxes axes, double room = 1);  // room: for grouped rows, times the mean

  // From now on nodes are made for this one: its scope, piece and phase.
  void stand_at(const Node&);
  void stand_at(std::uint32_t scope, std::uint16_t piece, bool backward);

  Tensor reduce(Tensor x, AxisSet over, Reduce how, const std::string& cause);
  // The value under the names `to`, which may be split otherwise (moves.h).
  struct Renamed {
    Tensor tensor;
    AxisSet pending;        // sums that are still to be made
    bool gathered = false;  // it had to be put together
  };
  Renamed rename(Tensor x, const DimSet& to, AxisSet pending, const std::string& cause, Gather = Gather::now);
  DimId whole_along(DimId, const AxisList& gone);  // the same dim, no longer split over these axes
  DimId own_dim(std::string name, i64 size);       // of the local graph alone
  Tensor exchange_rows(Tensor x, Tensor counts, DimId sent, DimId came, const AxisList& over, const std::string& cause);
  // x on the first rank along the axes, zeros on the others: what is whole becomes a pending sum.
  Tensor only_first(Tensor x, AxisSet axes);

  // Flat storage of `elements` over axes, padded to a multiple of `blocks`, so that a block over more axes lies within
  // one over fewer. One name per size and axes: equal layers stay equal.
  DimId flat_dim(i64 elements, const AxisList& axes, i64 blocks);
  Tensor gather_flat(Tensor block, const Type& to, const AxisList& axes, const std::string& cause);
  Tensor scatter_flat(Tensor x, DimId flat, AxisSet& pending, const std::string& cause);

  i64 elements(const Type& t) const { return builder.graph.elements(t); }
  DimAxes axes;
  Builder builder;
  std::vector<Collective> collectives;
  std::vector<Fault> warnings;

 private:
  Tensor record(Tensor made, const AxisList& over, const std::string& cause);
  DimId dim_on(DimId like, AxisList over);  // the same dim on other axes, on its way to another name
  DimId changed(const Move::Change&, const DimSet& to);
  Tensor step_aside(Tensor x, DimSet& at, const DimSet& to);
  Tensor moved(Tensor x, const Move&, DimSet& at, const DimSet& to, const std::string& cause);
  void warn_in_vain(Tensor x, const Move&, const std::string& cause);
};

}  // namespace stretto

#include "stretto/ops/fit.h"

#include "stretto/ops/broadcast.h"
#include "stretto/ops/permute.h"
#include "stretto/ops/sum.h"

namespace stretto {

Tensor fit(Tensor g, const Type& like) {
  const DimSet dims = like.dims;  // `like` may lie in the graph that grows here
  g = sum_over(g, without(g.type().dims, dims));
  return g.type().dims.size() == dims.size() ? permute_to(g, dims) : broadcast_to(g, dims);
}

}  // namespace stretto

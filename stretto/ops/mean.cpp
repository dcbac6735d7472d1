#include "stretto/ops/mean.h"

#include "stretto/ops/inner/rules.h"
#include "stretto/ops/mul.h"
#include "stretto/ops/sum.h"

namespace stretto {

Tensor mean(Tensor x, const Dims& over) {
  const DimSet dims = rules::dims_of("mean", x, over);
  if (!is_float(x.dtype())) throw Error("mean", "{} holds integers", x.str()).hint("cast it first: cast(x, f32)");
  double count = 1;
  for (DimId d : dims) count *= x.builder->graph.dim(d).valid();
  return sum_over(x, dims) * (1 / count);
}

}  // namespace stretto

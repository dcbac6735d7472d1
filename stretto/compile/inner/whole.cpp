#include "stretto/compile/inner/whole.h"

#include <algorithm>

#include "stretto/ops/permute.h"
#include "stretto/shard/epilogue.h"

namespace stretto {
namespace {

// Those of `some` as they are where the matrix is whole.
Dims dims_there(Dims some, const Dims& logical, const Dims& there) {
  for (Dim& d : some) {
    const auto at = std::find_if(logical.begin(), logical.end(), [&](const Dim& x) { return x.name == d.name; });
    if (at != logical.end()) d = there[at - logical.begin()];
  }
  return some;
}

void refuse_whole(Slice& s, const Optimizer& o, const TracedParam& p) {
  s.whole = s.part = [&o, &p](Tensor) -> Tensor {
    throw Error("optimizer", "'{}' asks for {} {} as a whole matrix, and it is none to it", o.name, p.name,
                p.dims.str())
        .hint("update it as numbers where slice.matrix is empty; a matrix is multiplied with and has two sides");
  };
}

}  // namespace

std::optional<MatrixDims> matrix_of(const Optimizer& o, const TracedParam& p) {
  const auto named = [&](const std::string& pattern) { return is_name_or_glob(pattern, p.name); };
  if (!o.matrices || std::any_of(o.numbers.begin(), o.numbers.end(), named)) return std::nullopt;
  return p.matrix;
}

void offer_whole(Slice& s, const Optimizer& o, const TracedParam& p, const Sharded* sharded, ParamId param) {
  const std::optional<MatrixDims> logical = matrix_of(o, p);
  if (!logical) return refuse_whole(s, o, p);
  const Dims apart = logical->batch, there = sharded ? whole_dims(*sharded, param, apart) : p.dims;
  s.matrix = MatrixDims{dims_there(logical->rows, p.dims, there), dims_there(logical->columns, p.dims, there),
                        dims_there(apart, p.dims, there)};
  s.whole = [=](Tensor x) { return sharded ? whole_again(x, *sharded, param, apart) : x; };
  s.part = [=](Tensor x) { return sharded ? part_of_whole(x, *sharded, param, apart) : permute(x, there); };
}

}  // namespace stretto

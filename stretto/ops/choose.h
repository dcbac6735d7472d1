// choose(x, w, which, experts, out): per row the product with the matrix that `which` names.
//
//   gate = choose(h, w, which, experts, {batch, seq, choice, ff})   h{batch seq model} w{experts model ff}
//   y    = choose(u, v, which, experts, {batch, seq, model})        u{batch seq choice ff}, summed over choice
//
// A row is an index along all dims of `which` {batch seq choice}, i32; one that names no expert of w (-1, or another
// rank's) adds nothing. Rows stay in the order of tokens, and dims that are not asked for are summed.
#pragma once
#include <algorithm>

#include "stretto/ir/op.h"

namespace stretto {

struct ChooseAttrs {
  DimId expert;
  DimSet out;
  static constexpr void fields(auto& s, auto f) {
    f("expert", s.expert);
    f("out", s.out);
  }
};
Tensor choose(Tensor x, Tensor w, Tensor which, const Dim& expert, const Dims& out);

// What choose and choose_grad have in common: rules of types, placement and cost, and the kernels' workspace.
namespace choosing {
// How kernels cut their work: rows are sorted by expert, then gathered and multiplied block by block.
struct Workspace {
  static constexpr i64 block = 512;  // rows
  i64 experts = 0, rows = 0, k = 1, n = 1;
  i64 block_rows() const { return std::min(rows, block); }
  i64 offsets() const { return experts + 1 + 2 * rows; }  // where experts begin; of every row both operands' places
  std::size_t bytes(DType t) const {
    return std::size_t(offsets()) * sizeof(i64) + std::size_t(block_rows() * (k + n)) * size_of(t);
  }
};
void check_types(std::string_view where, const OpCall&);
Spread spread(const OpCall&, DimId expert, std::vector<int> masked);
Cost cost(const OpCall&, DimId expert);
std::size_t scratch(const OpCall&, DimId expert, const Type& w);
}  // namespace choosing

}  // namespace stretto

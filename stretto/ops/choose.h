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
// How kernels cut their work: rows are sorted by expert and multiplied block by block.
struct Workspace {
  static constexpr i64 block = 512;  // rows
  i64 experts = 0, rows = 0, k = 1, n = 1;
  i64 places = 0;  // of a bf16 result where several rows are added up: in f32, some columns at a time
  i64 block_rows() const { return std::min(rows, block); }
  // Where experts begin, and of every row both operands' places; what follows begins with a line of the cache.
  i64 offsets() const { return (experts + 1 + 2 * rows + 7) / 8 * 8; }
  // Of a result in bf16: columns that are made at a time, and what is summed at a time.
  i64 columns() const {
    return std::min(n, places == 0 ? 1024 : std::clamp<i64>((1 << 20) / places / 32 * 32, 64, 1024));
  }
  i64 summed() const { return std::min<i64>(k, 512); }
  std::size_t bytes(DType operands, DType result) const;
};
void check_types(std::string_view where, const OpCall&);
Spread spread(const OpCall&, DimId expert, std::vector<int> masked);
Cost cost(const OpCall&, DimId expert);
std::size_t scratch(const OpCall&, DimId expert, const Type& w);
}  // namespace choosing

}  // namespace stretto

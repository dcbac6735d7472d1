// reduce_scatter(x, seq, seq_r, {"tensor"}): the sum over the ranks along mesh axes, of which every rank gets its block
// along a dim. Made by shard/ only.
//
// reduce_scatter_rows(x, ranks, rows, {"tensor"}): the same of a value whose blocks lie along a dim of their own, which
// goes: {ranks rows} -> {rows}.
//
// reduce_scatter_flat(x, flat, {"data"}): likewise a block of all elements in order, padded with zeros.
#pragma once
#include <string>
#include <vector>

#include "stretto/ops/rank_blocks.h"

namespace stretto {

Tensor reduce_scatter(Tensor x, DimId from, DimId to, std::vector<std::string> axes);
Tensor reduce_scatter_rows(Tensor x, DimId ranks, DimId rows, std::vector<std::string> axes);
Tensor reduce_scatter_flat(Tensor x, DimId to, std::vector<std::string> axes);

}  // namespace stretto

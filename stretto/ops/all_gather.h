// all_gather(x, seq_r, seq, {"tensor"}): the blocks of all ranks along mesh axes, one after the other along a dim.
// Made by shard/ only.
//
// all_gather_rows(x, rows, ranks, {"tensor"}): the same with the ranks along a dim of their own: {rows} -> {ranks
// rows}.
//
// all_gather_flat(x, {model, ff}, {"data"}): x is a block of the result's elements in order, padded at the end.
#pragma once
#include <string>
#include <vector>

#include "stretto/ops/rank_blocks.h"

namespace stretto {

Tensor all_gather(Tensor x, DimId from, DimId to, std::vector<std::string> axes);
Tensor all_gather_rows(Tensor x, DimId rows, DimId ranks, std::vector<std::string> axes);
Tensor all_gather_flat(Tensor x, DimSet to, std::vector<std::string> axes);

}  // namespace stretto

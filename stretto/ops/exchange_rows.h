// exchange_rows(x, counts, sent, came, {"expert"}): rows to the ranks they are for. Those for one rank follow each
// other in `sent`, by rank, and those of one rank in `came`; counts{from to} says how many. Made by shard/ only.
#pragma once
#include <string>
#include <vector>

#include "stretto/ir/op.h"

namespace stretto {

struct ExchangeRowsAttrs {
  std::vector<std::string> axes;
  DimId sent, came;
  static constexpr void fields(auto& s, auto f) {
    f("axes", s.axes);
    f("sent", s.sent);
    f("came", s.came);
  }
};
Tensor exchange_rows(Tensor x, Tensor counts, DimId sent, DimId came, std::vector<std::string> axes);

}  // namespace stretto

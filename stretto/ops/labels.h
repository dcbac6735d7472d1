// labels(y, vocab, ignore): the same labels, all of which are `ignore` or classes of a dim; any other is an Error when
// it is met. For losses that are taken apart: their parts would find such a label nowhere. Made by decomposition only.
#pragma once
#include "stretto/ir/op.h"

namespace stretto {

struct LabelsAttrs {
  DimId over;
  i64 ignore = -100;
  static constexpr void fields(auto& s, auto f) {
    f("over", s.over);
    f("ignore", s.ignore);
  }
};
Tensor labels(Tensor y, DimId over, i64 ignore);
// What a loss says of a label that is no class.
Error no_class(i64 label, std::string_view dim, i64 classes, i64 ignore);

}  // namespace stretto

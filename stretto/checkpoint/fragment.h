// Which part of a tensor is stored in one place, when several processes have written it: of a box in the tensor, row by
// row, `count` elements from `first` on.
//
//   Fragment rows{.shape = {50, 32}, .offsets = {25, 0}, .sizes = {25, 32}, .count = 800};   // the second half
//   put_fragment(rows, 4, stored, whole);            // where its elements of 4 bytes belong
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "stretto/base/id.h"

namespace stretto {

struct Fragment {
  std::vector<i64> shape;           // of the whole tensor
  std::vector<i64> offsets, sizes;  // of the box in it
  i64 first = 0, count = 0;
  bool operator==(const Fragment&) const = default;
};

i64 elements_of(const std::vector<i64>& sizes);
bool is_whole(const Fragment&);

// What is wrong with one; "" when nothing is. Only such a one may be given to the functions below.
std::string wrong_with(const Fragment&);
// What is wrong with all fragments of a tensor together: they must hold every element once.
std::string wrong_with(std::span<const Fragment>);

void put_fragment(const Fragment&, std::size_t element_bytes, std::span<const std::byte> from, std::span<std::byte> to);

}  // namespace stretto

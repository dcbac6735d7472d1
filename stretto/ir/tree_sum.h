// The order in which members' elements are added up, whatever carries them: the balanced binary tree over n members, of
// which the first half has the largest power of two below n. So a tree over groups of 2^k neighbours, each the tree
// over its members, is the same tree.
//
//   float sum = tree_sum(4, [&](int member) { return operand_of(member)[x]; });     // (0 + 1) + (2 + 3)
#pragma once

namespace stretto {

inline int tree_half(int n) {
  int half = 1;
  while (2 * half < n) half *= 2;
  return half;
}

template <class Get, class Add>
auto tree_reduce(int first, int n, const Get& get, const Add& add) -> decltype(get(0)) {
  if (n == 1) return get(first);
  const int half = tree_half(n);
  const auto left = tree_reduce(first, half, get, add);
  return add(left, tree_reduce(first + half, n - half, get, add));
}
template <class Get>
auto tree_sum(int n, const Get& get) {
  return tree_reduce(0, n, get, [](auto a, auto b) { return a + b; });
}

}  // namespace stretto

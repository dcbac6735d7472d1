// One value for each of an enum's values.
//
//   EnumArray<Phase, double, 5> seconds{};
//   seconds[Phase::F] = 1;
#pragma once
#include <array>
#include <cstddef>

namespace stretto {

template <class E, class T, std::size_t N>
struct EnumArray {
  std::array<T, N> all;

  constexpr T& operator[](E e) { return all[static_cast<std::size_t>(e)]; }
  constexpr const T& operator[](E e) const { return all[static_cast<std::size_t>(e)]; }
  auto begin() const { return all.begin(); }
  auto end() const { return all.end(); }
};

}  // namespace stretto

// One answer per alternative of a std::variant. An alternative that is left out does not compile.
//
//   match(shape, [](const Circle& c) { return c.area(); }, [](const Square& s) { return s.side * s.side; });
//   match(shape, [](const Circle&) { return true; }, [](const OneOf<Square, Triangle> auto&) { return false; });
#pragma once
#include <concepts>
#include <utility>
#include <variant>

namespace stretto {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

template <class Variant, class... Cases>
decltype(auto) match(Variant&& v, Cases&&... cases) {
  return std::visit(Overloaded{std::forward<Cases>(cases)...}, std::forward<Variant>(v));
}

// For one answer to several alternatives: they are named, since `auto` alone would also take one that is added later.
template <class T, class... Kinds>
concept OneOf = (std::same_as<T, Kinds> || ...);

}  // namespace stretto

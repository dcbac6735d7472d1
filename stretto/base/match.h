// One answer per alternative of a std::variant. An alternative that is left out does not compile.
//
//   match(shape, [](const Circle& c) { return c.area(); }, [](const Square& s) { return s.side * s.side; });
#pragma once
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

}  // namespace stretto

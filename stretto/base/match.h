// One answer per alternative of a std::variant. An alternative that is left out does not compile.
//
//   match(shape, [](const Circle& c) { return c.area(); }, [](const Square& s) { return s.side * s.side; });
//   match(shape, [](const Circle&) { return true; }, [](const OneOf<Square, Triangle> auto&) { return false; });
#pragma once
#include <concepts>
#include <type_traits>
#include <utility>
#include <variant>

namespace stretto {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

// Says in one line which alternative has no case; std::visit would say it in hundreds.
template <class Cases, class Alternative>
constexpr bool has_case() {
  static_assert(std::is_invocable_v<Cases&, Alternative>, "match: no case for this alternative");
  return std::is_invocable_v<Cases&, Alternative>;
}
template <class Cases, class Variant, std::size_t... I>
constexpr bool has_all_cases(std::index_sequence<I...>) {
  return (has_case<Cases, decltype(std::get<I>(std::declval<Variant>()))>() & ...);
}

template <class Variant, class... Cases>
decltype(auto) match(Variant&& v, Cases&&... cases) {
  constexpr std::size_t alternatives = std::variant_size_v<std::remove_cvref_t<Variant>>;
  if constexpr (has_all_cases<Overloaded<std::decay_t<Cases>...>, Variant>(std::make_index_sequence<alternatives>()))
    return std::visit(Overloaded{std::forward<Cases>(cases)...}, std::forward<Variant>(v));
}

// For one answer to several alternatives: they are named, since `auto` alone would also take one that is added later.
template <class T, class... Kinds>
concept OneOf = (std::same_as<T, Kinds> || ...);

}  // namespace stretto

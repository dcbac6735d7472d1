// Strong ids: an index that knows into what. No arithmetic, no mixing, no number that means "none".
//
//   IdVector<TaskId, Task> tasks;
//   const TaskId t = tasks.push_back({...});
//   for (TaskId id : tasks.ids()) show(tasks[id]);
//   std::optional<TaskId> maybe;                       // where there may be none
#pragma once
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <ranges>
#include <utility>
#include <vector>

namespace stretto {

using i64 = std::int64_t;
using u64 = std::uint64_t;

template <class Tag, class Rep = std::uint32_t>
struct Id {
  Rep value = 0;
  constexpr Id() = default;
  template <std::integral I>
  constexpr explicit Id(I i) : value(static_cast<Rep>(i)) {}
  constexpr auto operator<=>(const Id&) const = default;
};

// Of a graph.
using DimId = Id<struct DimTag, std::uint16_t>;
using NodeId = Id<struct NodeTag>;
using PieceId = Id<struct PieceTag, std::uint16_t>;  // what lies between two neighbouring boundaries
using ParamId = Id<struct ParamTag>;
using InputId = Id<struct InputTag>;
using ScalarId = Id<struct ScalarTag>;  // a number per step
using OutputId = Id<struct OutputTag>;

// Of a schedule.
using ActorId = Id<struct ActorTag, std::uint16_t>;
using PipeId = Id<struct PipeTag, std::uint8_t>;
using StageId = Id<struct StageTag, std::uint16_t>;
using MicrobatchId = Id<struct MicrobatchTag>;
using ActionId = Id<struct ActionTag>;  // a position in an actor's row

// The ids 0, 1, ... n - 1.
template <class I>
auto ids_until(std::size_t n) {
  return std::views::iota(std::size_t(0), n) | std::views::transform([](std::size_t i) { return I(i); });
}

// A vector that only its own ids index.
template <class I, class T>
class IdVector {
 public:
  using value_type = T;
  using const_iterator = typename std::vector<T>::const_iterator;
  IdVector() = default;
  explicit IdVector(std::size_t n, const T& value = T()) : all_(n, value) {}
  IdVector(std::initializer_list<T> all) : all_(all) {}
  explicit IdVector(std::vector<T> all) : all_(std::move(all)) {}

  decltype(auto) operator[](I id) { return all_[id.value]; }
  decltype(auto) operator[](I id) const { return all_[id.value]; }
  bool has(I id) const { return id.value < all_.size(); }

  I push_back(T x) {
    all_.push_back(std::move(x));
    return I(all_.size() - 1);
  }
  void pop_back() { all_.pop_back(); }
  void erase(I id) { all_.erase(all_.begin() + id.value); }
  T& back() { return all_.back(); }
  const T& back() const { return all_.back(); }
  std::size_t size() const { return all_.size(); }
  bool empty() const { return all_.empty(); }
  void clear() { all_.clear(); }
  void reserve(std::size_t n) { all_.reserve(n); }
  void resize(std::size_t n, const T& value = T()) { all_.resize(n, value); }
  void assign(std::size_t n, const T& value) { all_.assign(n, value); }

  auto begin() { return all_.begin(); }
  auto end() { return all_.end(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  auto ids() const { return ids_until<I>(all_.size()); }
  I next_id() const { return I(all_.size()); }  // of what is added next
  const std::vector<T>& list() const { return all_; }

  bool operator==(const IdVector&) const = default;

 private:
  std::vector<T> all_;
};

}  // namespace stretto

template <class Tag, class Rep>
struct std::hash<stretto::Id<Tag, Rep>> {
  std::size_t operator()(stretto::Id<Tag, Rep> id) const noexcept { return std::hash<Rep>{}(id.value); }
};

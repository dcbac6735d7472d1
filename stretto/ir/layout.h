// Mesh and layout as plain data: Mesh{{"pipe", 4}, {"data", 2}}, Layout{{"batch", "data"}, {"seq_r", {"context",
// "tensor"}}}.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stretto {

struct Axis {
  std::string name;
  int size = 1;
  bool operator==(const Axis&) const = default;
};

struct Mesh : std::vector<Axis> {  // ordered: major to minor
  using vector::vector;
  int extent(std::string_view axis) const;  // 1 when the mesh has no such axis
  int ranks() const;                        // product of all extents
  std::string str() const;                  // "pipe=4 data=2"
};

// Where a rank stands: one number per axis of the mesh, in the mesh's order. Ranks count the last axis fastest.
using Coordinates = std::vector<int>;
Coordinates coordinates_of(const Mesh&, int rank);
int rank_of(const Mesh&, const Coordinates&);
// Which block along these axes (major to minor) the rank holds: 0 ... product of their extents - 1.
std::int64_t block_of(const Mesh&, const Coordinates&, const std::vector<std::string>& axes);
// The ranks that differ from this one along these axes only, by their block. Every sum over a group is, per element,
// the balanced binary tree over this order.
std::vector<int> group_of(const Mesh&, int rank, const std::vector<std::string>& axes);

struct Axes : std::vector<std::string> {  // "data" or {"data", "expert"}
  Axes() = default;
  Axes(const char* one) : vector{one} {}
  Axes(std::string one) : vector{std::move(one)} {}
  Axes(std::initializer_list<const char*> many) : vector(many.begin(), many.end()) {}
};

struct LayoutEntry {
  std::string dim;
  Axes axes;
  bool operator==(const LayoutEntry&) const = default;
};
struct Layout : std::vector<LayoutEntry> {
  using vector::vector;
  std::string str() const;  // "batch->data heads->tensor"
};

// What parameters, accumulated gradients and optimizer state are cut over beside the axes their own dims lie on: flat,
// in contiguous blocks. `gradients` and `params` are the first axes of `state`, or none.
struct Storage {
  Axes state, gradients, params;
};

}  // namespace stretto

// Mesh and layout as plain data: Mesh{{"pipe", 4}, {"data", 2}}, Layout{{"batch", "data"}, {"seq_r", {"context",
// "tensor"}}}.
#pragma once
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

}  // namespace stretto

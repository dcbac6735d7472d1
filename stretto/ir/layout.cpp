#include "stretto/ir/layout.h"

#include "stretto/base/text.h"

namespace stretto {

int Mesh::extent(std::string_view axis) const {
  for (const Axis& a : *this)
    if (a.name == axis) return a.size;
  return 1;
}

int Mesh::ranks() const {
  int n = 1;
  for (const Axis& a : *this) n *= a.size;
  return n;
}

std::string Mesh::str() const {
  std::vector<std::string> parts;
  for (const Axis& a : *this) parts.push_back(a.name + "=" + std::to_string(a.size));
  return parts.empty() ? "serial" : join(parts, " ");
}

Coordinates coordinates_of(const Mesh& mesh, int rank) {
  Coordinates at(mesh.size());
  for (std::size_t i = mesh.size(); i-- > 0; rank /= mesh[i].size) at[i] = rank % mesh[i].size;
  return at;
}

int rank_of(const Mesh& mesh, const Coordinates& at) {
  int rank = 0;
  for (std::size_t i = 0; i < mesh.size(); ++i) rank = rank * mesh[i].size + at[i];
  return rank;
}

std::int64_t block_of(const Mesh& mesh, const Coordinates& at, const std::vector<std::string>& axes) {
  std::int64_t block = 0;
  for (const std::string& name : axes)
    for (std::size_t i = 0; i < mesh.size(); ++i)
      if (mesh[i].name == name) block = block * mesh[i].size + at[i];
  return block;
}

std::vector<int> group_of(const Mesh& mesh, int rank, const std::vector<std::string>& axes) {
  std::vector<int> group{rank};
  for (const std::string& name : axes) {
    std::vector<int> next;
    for (const int member : group) {
      Coordinates c = coordinates_of(mesh, member);
      for (std::size_t i = 0; i < mesh.size(); ++i)
        if (mesh[i].name == name)
          for (c[i] = 0; c[i] < mesh[i].size; ++c[i]) next.push_back(rank_of(mesh, c));
    }
    if (!next.empty()) group = std::move(next);
  }
  return group;
}

std::string Layout::str() const {
  std::vector<std::string> parts;
  for (const LayoutEntry& e : *this) parts.push_back(e.dim + "->" + join(e.axes, ","));
  return join(parts, " ");
}

}  // namespace stretto

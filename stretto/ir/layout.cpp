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

std::string Layout::str() const {
  std::vector<std::string> parts;
  for (const LayoutEntry& e : *this) parts.push_back(e.dim + "->" + join(e.axes, ","));
  return join(parts, " ");
}

}  // namespace stretto

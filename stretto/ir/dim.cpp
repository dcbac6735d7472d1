#include "stretto/ir/dim.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "stretto/base/error.h"

namespace stretto {

Dim Dim::like(std::string new_name) const { return like(std::move(new_name), Like{}); }

Dim Dim::like(std::string new_name, const Like& how) const {
  Dim d{.name = std::move(new_name),
        .size = how.size ? how.size : size,
        .logical = how.size ? 0 : logical,
        .parent = name};
  for (const Dim& m : how.minus) d.minus.push_back(m.name);
  for (const Dim& p : how.plus) d.plus.push_back(p.name);
  return d;
}

Dim Dim::grouped(const Dim& other) const {
  Dim d = *this;
  d.by = other.name;
  return d;
}

Dim Dim::whole(std::string new_name) const {
  return {.name = std::move(new_name), .size = size, .logical = logical, .parent = name, .is_whole = true};
}

Dim Dim::padded(i64 multiple) const {
  if (multiple < 1)
    throw Error("padded", "dim '{}' cannot be padded to a multiple of {}", name, multiple)
        .hint("use a positive number, e.g. 128");
  Dim d = *this;
  d.logical = valid();
  d.size = (d.logical + multiple - 1) / multiple * multiple;
  if (d.size == d.logical) d.logical = 0;
  return d;
}

std::string Dim::str() const {
  if (!axes.empty()) return fmt::format("{}={}/{}", name, size, fmt::join(axes, "/"));
  return logical ? fmt::format("{}={}+{}", name, logical, size - logical) : fmt::format("{}={}", name, size);
}

std::string Dims::str() const {
  std::string s = "{";
  for (const Dim& d : *this) s += (s.size() > 1 ? " " : "") + d.str();
  return s + "}";
}

bool contains(const DimSet& s, DimId d) { return std::find(s.begin(), s.end(), d) != s.end(); }

std::optional<int> find(const DimSet& s, DimId d) {
  const auto it = std::find(s.begin(), s.end(), d);
  if (it == s.end()) return std::nullopt;
  return it - s.begin();
}

int position(const DimSet& s, DimId d) {
  const std::optional<int> found = find(s, d);
  STRETTO_ASSERT(found, "a dim of the set");
  return *found;
}

DimSet without(DimSet s, const DimSet& gone) {
  std::erase_if(s, [&](DimId d) { return contains(gone, d); });
  return s;
}

DimSet joined(DimSet s, const DimSet& more) {
  for (DimId d : more)
    if (!contains(s, d)) s.push_back(d);
  return s;
}

}  // namespace stretto

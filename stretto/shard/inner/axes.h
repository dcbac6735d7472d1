// Which mesh axes every dim lies on: a pure function of its name. Axes of one rank count as none.
//
//   DimAxes axes = resolve(graph.dims, mesh, layout, faults);     axes.of[dim]   // major to minor
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/base/id.h"
#include "stretto/ir/graph.h"
#include "stretto/ir/layout.h"

namespace stretto {

using AxisId = Id<struct AxisTag, std::uint8_t>;  // a position in a mesh without the pipeline's axis
using AxisList = std::vector<AxisId>;             // major to minor

// Some axes of a mesh, in no order.
class AxisSet {
 public:
  static constexpr std::size_t most = 32;

  AxisSet() = default;
  AxisSet(const AxisList& list) {
    for (AxisId a : list) bits_ |= bit(a);
  }
  bool has(AxisId a) const { return bits_ & bit(a); }
  explicit operator bool() const { return bits_ != 0; }
  AxisSet operator|(AxisSet b) const { return AxisSet(bits_ | b.bits_); }
  AxisSet operator&(AxisSet b) const { return AxisSet(bits_ & b.bits_); }
  AxisSet operator-(AxisSet b) const { return AxisSet(bits_ & ~b.bits_); }
  AxisSet& operator|=(AxisSet b) { return *this = *this | b; }
  AxisSet& operator-=(AxisSet b) { return *this = *this - b; }
  bool operator==(const AxisSet&) const = default;

 private:
  explicit AxisSet(std::uint32_t bits) : bits_(bits) {}
  static std::uint32_t bit(AxisId a) { return 1u << a.value; }
  std::uint32_t bits_ = 0;
};

struct DimAxes {
  Mesh mesh;  // without the pipeline's axis
  IdVector<DimId, AxisList> of;
  AxisSet refused = {};  // axes that a faulty entry speaks of: not to be called unused

  void lay(DimId, AxisList);  // a new dim, on these axes
  auto ids() const { return ids_until<AxisId>(mesh.size()); }
  const Axis& axis(AxisId a) const { return mesh[a.value]; }
  std::optional<DimId> groups(DimId rows,
                              const std::vector<Dim>&) const;  // the dim that these are grouped by (Dim::by)
  AxisSet set(DimId) const;
  AxisSet set(const DimSet&) const;
  AxisList list(AxisSet) const;  // in the mesh's order
  int ranks(const AxisList&) const;
  std::vector<std::string> names(const AxisList&) const;
  std::vector<std::string> names(AxisSet axes) const { return names(list(axes)); }
};

// Unknown dims and axes, an axis twice, sizes that do not divide and dims that may not be split are reported in
// `faults`; what is left is usable.
DimAxes resolve(const std::vector<Dim>&, const Mesh&, const Layout&, std::vector<Fault>& faults);

// What a fault about these dims and axes is about: their entries in the layout, then what gives the axes their sizes.
std::vector<std::string> settings_of(const std::vector<std::string>& dims, std::span<const std::string> axes);

// Where the axes are in the mesh; unknown ones are reported.
AxisList axes_named(const Mesh&, const Axes&, std::string_view where, const std::vector<std::string>& settings,
                    std::vector<Fault>& faults);

}  // namespace stretto

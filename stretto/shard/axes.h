// Which mesh axes every dim lies on: a pure function of its name. Axes of one rank count as none.
//
//   DimAxes axes = resolve(graph.dims, mesh, layout, faults);     axes.of[dim.value]   // major to minor
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/ir/graph.h"
#include "stretto/ir/layout.h"

namespace stretto {

using AxisMask = std::uint32_t;  // one bit per axis of the mesh

struct DimAxes {
  Mesh mesh;                         // without the pipeline's axis
  std::vector<std::vector<int>> of;  // per dim: axes, major to minor
  AxisMask refused = 0;              // axes that a faulty entry speaks of: not to be called unused

  AxisMask mask(DimId d) const;
  AxisMask mask(const DimSet&) const;
  int ranks(std::span<const int> axes) const;
  int ranks(AxisMask) const;
  std::vector<std::string> names(std::span<const int> axes) const;
  std::vector<std::string> names(AxisMask) const;  // in the mesh's order
};

// Unknown dims and axes, an axis twice, sizes that do not divide and dims that may not be split are reported in
// `faults`; what is left is usable.
DimAxes resolve(const std::vector<Dim>&, const Mesh&, const Layout&, std::vector<Fault>& faults);

// The axes' numbers in the mesh; unknown ones are reported.
std::vector<int> axis_numbers(const Mesh&, const Axes&, std::string_view where, std::vector<Fault>& faults);

}  // namespace stretto

// Strided views of memory, and views of views.
//
//   View all = contiguous_view(graph, graph.type(value));
//   View here = on_rank(all, graph, mesh, coordinates_of(mesh, rank));     // begins where the rank's block does
#pragma once
#include <vector>

#include "stretto/ir/layout.h"
#include "stretto/ir/op.h"

namespace stretto {

// Where a value's elements lie: one entry per dim, in elements. A broadcast dim has stride 0.
struct View {
  DType dtype = f32;
  DimSet dims;
  std::vector<i64> sizes, strides;
  std::vector<i64> offsets;  // logical position of the first element: not 0 for a shard
  std::vector<i64> limits;   // logical sizes: elements at or beyond are padding

  bool contiguous() const;
  i64 elements() const;
  i64 stride(DimId d) const;  // 0 when it has no such dim
  i64 size(DimId d) const;    // 1 when it has no such dim
  i64 valid(DimId d) const;   // how many elements of this view's range are not padding
};
View contiguous_view(const Graph&, const Type&);
// The view as a rank of the mesh sees it: along dims that are split it starts where the rank's block starts. All that
// differs from rank to rank within an actor lies in these offsets.
View on_rank(View, const Graph&, const Mesh&, const Coordinates&);
View sub_view(const View& whole, const ViewMap& map, const DimSet& dims, const Graph&);
i64 start_of(const View& whole, const ViewMap& map);  // in elements, from whole's first

}  // namespace stretto

// The usual layouts by short names.
//
//   NamedLayout n = layout_of({.data = 2, .tensor = 4, .sequence = true, .zero = 1}, graph.dims);
//   shard(step, n.mesh, n.layout, {.storage = n.storage});
#pragma once
#include <string>
#include <vector>

#include "stretto/ir/dim.h"
#include "stretto/ir/layout.h"

namespace stretto {

struct ParallelNames {
  int data = 1;           // rows of the batch
  int replicas = 1;       // rows of the batch too, but nothing is cut over them: groups of data ranks, one per node
  int tensor = 1;         // heads, feed-forward width, vocabulary
  int expert = 1;         // experts, and rows of the batch elsewhere
  int context = 1;        // positions of a sequence
  int depth = 1;          // rows of the batch; parameters are stored in parts and gathered when used
  bool sequence = false;  // between the layers' matrix products positions are split over the tensor axis
  bool exchange = false;  // context: attention exchanges positions for heads instead of gathering keys and values
  int zero = 0;           // over the data axis are cut: 1 optimizer state, 2 gradients too, 3 parameters too
  bool operator==(const ParallelNames&) const = default;
};
// Those with more than one rank, in the order of the mesh.
Mesh axes_of(const ParallelNames&);
struct NamedLayout {
  Mesh mesh;
  Layout layout;
  Storage storage;
};
// Only dims that the model has are mapped. What these names cannot say is said by a layout of one's own.
NamedLayout layout_of(const ParallelNames&, const std::vector<Dim>& dims, const std::string& batch = "batch");

}  // namespace stretto

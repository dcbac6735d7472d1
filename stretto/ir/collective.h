// What a collective does, as plain data: who gets which elements of whose operand. One shape serves threads, MPI, the
// cost model and the simulator.
//
//   CollectiveShape s = shape_of(graph, node, mesh);          // of a node of all_reduce, all_gather, ...
//   CollectiveShape t = shape_of(graph, node, in, out, mesh); // the same on strided memory
//
// Members are numbered by their block along `axes` (see group_of). A member's operand holds boxes: the one for member i
// begins at i * in_step, and in member i's result what came from member j begins at j * out_step:
//
//   reduce    all_reduce       out_i[x]                  = sum over j of in_j[x]
//   gather    all_gather       out_i[j * out_step + x]   = in_j[x]
//   scatter   reduce_scatter   out_i[x]                  = sum over j of in_j[i * in_step + x]
//   exchange  all_to_all       out_i[j * out_step + x]   = in_j[i * in_step + x]
//   rows      exchange_rows    rows for member i follow each other in in_j, by i, and in out_i, by j
//
// How many rows go from whom to whom is known at run time only: every member has the matrix `counts`, counts[j][i] from
// j to i. What no row comes for is zero.
//
// Every sum is, per element, the balanced binary tree over members.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stretto/ir/layout.h"
#include "stretto/ir/view.h"

namespace stretto {

std::string_view name_of(CollectiveKind);  // "all_reduce", ...

struct CollectiveShape {
  CollectiveKind kind = CollectiveKind::reduce;
  DType dtype = f32;
  Reduce how = Reduce::sum;
  int members = 1;
  std::vector<std::string> axes;             // major to minor
  std::vector<i64> sizes;                    // of a box, outermost first; none: one element
  std::vector<i64> in_strides, out_strides;  // of a box, in elements
  i64 in_step = 0, out_step = 0;             // in elements; in_step: scatter, exchange; out_step: gather, exchange
  // Of exchange_rows: what operand and result have room for, and elements of a row. `sizes` are of as many rows as the
  // larger of the two has, and the steps are from one row to the next.
  struct Rows {
    i64 in = 0, out = 0, elements = 1;
    bool operator==(const Rows&) const = default;
  };
  std::optional<Rows> rows{};
  // Flat storage: sizes is {block}, and the boxes of all members together hold so many elements; what lies beyond is
  // padding, which a gather does not write and a scatter does not read but sets to zero.
  std::optional<i64> valid{};

  // Does everybody have something else for everybody?
  bool exchanges() const { return kind == CollectiveKind::exchange || kind == CollectiveKind::rows; }
  bool sums() const { return kind == CollectiveKind::reduce || kind == CollectiveKind::scatter; }
  i64 box() const;                  // elements of a box
  i64 box_valid(int member) const;  // without padding
  i64 operand() const;              // elements that a member gives, padding included
  i64 result() const;               // ... and gets
  std::string str() const;          // "all_reduce over data=2: f32 {64 128}"
  bool operator==(const CollectiveShape&) const = default;
};

// For the ops' entries.
inline void add_box_dim(CollectiveShape& s, i64 size, i64 in_stride, i64 out_stride) {
  s.sizes.push_back(size);
  s.in_strides.push_back(in_stride);
  s.out_strides.push_back(out_stride);
}

// The shape of a node of all_reduce, all_gather, reduce_scatter or all_to_all.
CollectiveShape shape_of(const Graph&, const Node&, const Mesh&);  // contiguous memory
CollectiveShape shape_of(const Graph&, const Node&, const View& in, const View& out, const Mesh&);

// The same boxes with as few dims as possible: those of one element gone, neighbours merged where both sides allow it.
CollectiveShape merged(CollectiveShape);

}  // namespace stretto

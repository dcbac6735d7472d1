// The order of chunks that interleaved schedules share: microbatches go in groups of g, and a group passes all chunks
// of an actor before the next group starts.
//
//   Interleaving in(request);
//   in.F(row, actor, k);   // the k-th forward of that actor
#pragma once
#include "stretto/schedule/schedule.h"

namespace stretto::builders {

struct Interleaving {
  int actors, chunks, group, count;  // count: forwards (and backwards) per actor

  explicit Interleaving(const Request&);  // whose microbatches fall into equal groups

  void F(Row& row, int actor, int k) const { row.F(stage(actor, k / group % chunks), microbatch(k)); }
  void B(Row& row, int actor, int k) const { row.B(backward_stage(actor, k), microbatch(k)); }
  void I(Row& row, int actor, int k) const { row.I(backward_stage(actor, k), microbatch(k)); }
  void W(Row& row, int actor, int k) const { row.W(backward_stage(actor, k), microbatch(k)); }

 private:
  int stage(int actor, int chunk) const { return chunk * actors + actor; }
  int backward_stage(int actor, int k) const { return stage(actor, chunks - 1 - k / group % chunks); }
  int microbatch(int k) const { return k / (group * chunks) * group + k % group; }
};

// Interleaved 1F1B with (v-1)g + 2(p-1-r) + more warm-up forwards on actor r.
Schedule interleave(const Request& r, int more);

}  // namespace stretto::builders

// What builders share. A builder is a function of a Request whose chunks and segments are settled, and
// within the limits that its line in builders.def states:
//
//   Schedule gpipe(const Request& r) { Schedule s = looped(r); ...; return s; }
#pragma once
#include "stretto/schedule/schedule.h"

namespace stretto::builders {

#define STRETTO_SCHEDULE(function, ...) Schedule function(const Request&);
#include "stretto/schedule/builders.def"
#undef STRETTO_SCHEDULE

// What a stage does, counted: microbatch after microbatch, forward from the first of its segments to the last, backward
// from the last to the first. So its first backward comes after the forwards of all segments of a microbatch.
struct Counted {
  explicit Counted(const Request& r) : segments(r.segments), count(r.microbatches * r.segments) {}
  int segments, count;
  void F(Row& row, int stage, int n) const { row.add(Phase::F, stage, n / segments, 0, n % segments); }
  void back(Row& row, Phase phase, int stage, int n) const {
    row.add(phase, stage, n / segments, 0, last_segment() - n % segments);
  }
  int last_segment() const { return segments - 1; }
  // How many forwards there must be before the n-th backward.
  int forwards_before(int n) const { return n - n % segments + segments - n % segments; }
};

// `warm` forwards, and those of a microbatch's further segments, then pairs of one forward and one backward, then the
// remaining backwards.
void fill_one_f_one_b(Row& row, int stage, int warm, const Request&);

}  // namespace stretto::builders

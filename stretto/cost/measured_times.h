// How long each piece's phases took on the actors of a run that was measured, and a table of them as a file: what
// `log.profile` writes and `parallel.times` reads.
//
//   graph	piece	actor	F	I	W
//   93c1f0a4e2b7d518	0	0	0.0012	0.0013	0.0011
//
//   write_file("times.tsv", times_tsv(times));
//   MeasuredTimes again = read_times("times.tsv");
#pragma once
#include <span>
#include <string>
#include <vector>

#include "stretto/base/id.h"
#include "stretto/cost/times.h"

namespace stretto {

struct MeasuredPiece {
  int piece = 0, actor = 0;
  double F = 0, I = 0, W = 0;  // seconds of one microbatch
  double seconds() const { return F + I + W; }
  bool operator==(const MeasuredPiece&) const = default;
};

struct MeasuredTimes {
  std::string file = {};              // where they come from, for messages
  u64 graph = 0;                      // what a rank computed: times are of no other model, batch or layout
  std::vector<MeasuredPiece> pieces;  // a piece may have been on several actors; none: nothing was measured
};

std::string times_tsv(const MeasuredTimes&);
// Columns are found by name. What is missing or no time is refused with file and line.
MeasuredTimes read_times(const std::string& file);

// Of a full stage of so many actors, if they shared the pieces evenly.
Times even_times(const MeasuredTimes&, int actors);

// What was measured on several actors taken apart: what a piece takes on an actor of the usual speed, and how much
// longer each actor takes. Pieces of one kind do the same; actors that have no kind in common count as equally fast.
struct TimesApart {
  std::vector<MeasuredPiece> pieces;  // one each, in order; their actor means nothing
  std::vector<double> slower;         // per actor: 1.3 takes 30% longer than the usual one
};
TimesApart taken_apart(const MeasuredTimes&, std::span<const u64> kind_of_piece, int actors);

}  // namespace stretto

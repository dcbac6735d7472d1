// A timeline made ready for drawing: times from zero, one track per rank and lane, overlapping spans in slots above
// each other. What every picture starts from.
//
//   Scene s = scene(timeline);
//   for (const Track& t : s.tracks) for (const Bar& b : t.bars) draw(b.start, b.end, caption(*b.span));
#pragma once
#include <span>
#include <string>
#include <vector>

#include "stretto/schedule/timeline.h"

namespace stretto {

struct Bar {
  const Span* span = nullptr;  // into the timeline
  double start = 0, end = 0;   // from the first start of the timeline
  int chunk = 0;               // which of its actor's (pipe, stage), counted from 0
  int slot = 0, slots = 1;     // the bar takes the slot-th of `slots` equal shares of the track's height
};

struct Track {
  int actor = 0, coordinate = 0;  // of a rank
  Lane lane = Lane::compute;
  int slots = 1;          // the most that run at once
  std::vector<Bar> bars;  // in start order
};

struct Scene {
  const Timeline* timeline = nullptr;
  double origin = 0, length = 0;  // first start, first start to last end
  double shortest = 0;            // of the actions, but not below 1/16 of the usual; 0 when there is none
  int chunks = 1;                 // the most that one actor has
  std::vector<Track> tracks;      // by rank, then lane; every rank has a compute track
  std::vector<double> bubbles;    // per rank, idle shares of the length
  std::vector<int> longest;       // per actor, of its ranks the one that works longest: drawn where all are too many

  double bubble(const Track& t) const { return bubbles[std::size_t(t.actor) * timeline->ranks + t.coordinate]; }
};

constexpr int most_rows = 16;  // more ranks than that are folded

// Whether the track is drawn where ranks are folded: one of each actor.
bool stands_for_actor(const Scene&, const Track&);
bool folds(const Timeline&);
std::string row_name(const Timeline&, const Track&);  // "actor 1", "rank 3", "actor 1 rank 3"
std::string folded_text(const Timeline&);             // ", of 8 ranks per actor the busiest is drawn"; "" when all are

// Spans that are not finite, run backwards or name an actor that is not there are left out.
Scene scene(const Timeline&);

// How times are printed: as plain numbers in the unit of the given costs, or as seconds.
enum class Clock : std::uint8_t { units, seconds };

std::string time_text(double t, Clock);
std::string memory_text(double amount, const std::string& unit);  // "4.5 activations", "1.20 GiB"
std::string caption(const Span&);                                 // what stands in the bar: "3", "3.1", or the label
std::string describe(const Span&, int stages);                    // "2F3: forward of stage 2, microbatch 3"
std::string_view name_of(Phase);                                  // "forward", "input gradient", ...
std::string_view name_of(Lane);                                   // "compute", "messages", ...
double waiting_share(const Span&);                                // of its time; bars are as much paler
double peak_memory(const Timeline&);                              // of the actor that needs most
std::string summary(const Timeline&, Clock = Clock::units);       // "makespan 33, bubble 27.3%, peak 4 activations"

// A step of 1, 2 or 5 times a power of ten, so that `length` has at most `most` of them.
double tick_step(double length, int most);

// The phases that occur, in the order of the enum; lanes likewise (other than compute).
std::vector<Phase> phases_of(std::span<const Timeline>);
std::vector<Lane> lanes_of(std::span<const Timeline>);
std::string chunk_name(std::span<const Timeline>, int chunk);  // "chunk 1"; "up pipe" when all are bidirectional

}  // namespace stretto

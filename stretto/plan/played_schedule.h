// One schedule that is played with the times of many configurations: messages, W that fill gaps, overlap groups,
// gathers and scatters beside actions, and sums of gradients after the last of them.
//
//   PlayedSchedule played(valid(schedule), remakes);
//   const PlayedEnds& ends = played.ends(model.times(), links);
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "stretto/plan/storage_wire.h"
#include "stretto/simulate/schedule_tape.h"

namespace stretto {

// A W fills the gaps of what stands before it in its row: then a forward or an I takes another time until its message
// leaves, and the W the rest of what both take together.
struct Filled {
  double first = 0, w = 0;
};
struct PlayTimes {
  StageCosts stages;  // I: of a B, until its gradient is there
  IdVector<StageId, Filled> f, i;
  IdVector<StageId, double> alone;  // an I that no W follows
  struct Group {                    // of a forward and a B
    double saved = 0, late_f = 0, late_b = 0;
  };
  IdVector<StageId, Group> groups;
  IdVector<StageId, double> w;  // a W by itself
  struct Sums {                 // of a stage's gradients, once a step, beside its last backward
    double seconds = 0;
    double last = 0;  // of the first piece, whose gradients are made last
    int pieces = 1;
  };
  IdVector<StageId, Sums> sums;
  std::optional<double> hidden_sums = {};           // whatever stands beside them, the software hides so much of them
  IdVector<StageId, StorageWire::Pieces> cut = {};  // where storage is cut; of each stage one part of its times
  StorageHidden hidden = {};
  bool arranged = false;       // weight gradients are made in gaps that collectives of tasks leave
  bool late_adds = false;      // WireTurn::late, of a B
  bool again_at_once = false;  // what is made again of a stage is made from its first piece on
  // A turn waits for its message before anything else, as programs do that are too long to be arranged by when
  // messages come (program/overlap.h).
  bool receives_first = false;
  bool by_arrival = false;  // a W that waits for nothing goes first while a message is waited for
  // Of a message, where the software has it like that: its sender waits until it is there; and both take so long to
  // deal with it.
  bool sender_waits = false;
  double handling = 0;
};
// Per actor: when its last action ends, and when its sums of gradients are there too.
struct PlayedEnds {
  std::vector<double> last, summed;
  std::vector<double> first = {};  // when its first action starts
};
using ActorLinks = std::function<Link(int from, int to)>;

class PlayedSchedule {
 public:
  PlayedSchedule(Validated<Schedule>, bool remakes);
  PlayedSchedule(const PlayedSchedule&) = delete;

  const PlayedEnds& ends(const PlayTimes&, const ActorLinks&);
  const Schedule& schedule() const { return *schedule_; }
  std::ptrdiff_t nodes() const { return std::ssize(tape_.items); }

 private:
  Validated<Schedule> schedule_;
  SimulateOptions options_;
  ScheduleTape tape_;
  Player player_;
  std::vector<double> from_;
  struct Turn {  // a forward or an I with a W right after it
    std::uint32_t node;
    StageId stage;
    StageId of_w;
    Phase phase;
    bool apart;  // the W waits for nothing of what stands before it: it goes first while that waits for a message
  };
  std::vector<Turn> turns_;
  std::vector<std::pair<std::uint32_t, StageId>> alone_;  // an I without one
  struct Pair {                                           // members of an overlap group
    std::uint32_t first, second;
  };
  std::vector<Pair> pairs_;
  // What a node does about parameters that are cut: the stages whose pieces it visits first and last, at which end.
  struct Visit {
    StageId stage;
    bool front = true;
    bool operator==(const Visit&) const = default;
  };
  struct Visits {
    Visit from, to;
    std::uint32_t next = 0;  // the node of its actor that visits after it; 0: none
  };
  std::vector<std::optional<Visits>> visits_;
  std::vector<std::uint32_t> turn_at_;         // per node: its place in turns_, and one more; 0: none
  enum Paired : char { none, first, second };  // in an overlap group
  std::vector<char> paired_;                   // per node
  // Where the last gradients of a stage are made. A row of W nodes makes them piece by piece, from the last stage down.
  struct Gradients {
    StageId stage;
    std::uint32_t from, to;     // nodes
    double begin = 0, end = 1;  // which part of the time between them
  };
  std::vector<std::vector<Gradients>> last_gradients_;  // per actor, in order
  std::vector<StorageWire> wires_;                      // per actor
  std::vector<double> for_messages_;                    // per node: seconds that it is longer
  std::vector<double> turn_ends_;                       // per actor: of a turn that a W ends, as wires have it
  PlayedEnds ends_;
  void find_turns();
  void find_pairs();
  void find_visits();
  void find_last_gradients();
  void set_pair(const Pair&, const PlayTimes&);
  void set_turn(const Turn&, const PlayTimes&, double late);
  void again_after_messages();
  void find_for_messages(const PlayTimes&);
  double gather_after(std::uint32_t node, const PlayTimes&) const;
  void store(std::uint32_t node, const PlayTimes&, double free, double ready);
  double stored(std::uint32_t node, const PlayTimes&, double free, double start);
  double give_early(std::uint32_t node, const TurnEnds&);
  WireTurn turn_at(std::uint32_t node, const PlayTimes&) const;
  double summed(std::size_t actor, const PlayTimes&) const;
};

}  // namespace stretto

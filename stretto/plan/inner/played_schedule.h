// One schedule that is played with the times of many configurations: messages, gathers and scatters beside actions, and
// sums of gradients after the last of them.
//
//   PlayedSchedule played(valid(schedule), remakes);
//   const PlayedEnds& ends = played.ends(model.times(false), links);
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "stretto/plan/inner/storage_wire.h"
#include "stretto/simulate/schedule_tape.h"

namespace stretto {

struct PlayTimes {
  StageCosts stages;
  IdVector<StageId, double> given;  // of a B, until its gradient is there
  struct Sums {                     // of a stage's gradients, once a step, beside its last backward
    double seconds = 0;
    double last = 0;  // of the first piece, whose gradients are made last
    int pieces = 1;
  };
  IdVector<StageId, Sums> sums;
  std::optional<double> hidden_sums = {};           // the share that the software hides, whatever goes on beside them
  IdVector<StageId, StorageWire::Pieces> cut = {};  // where storage is cut; of each stage one part of its times
  StorageHidden hidden = {};
  IdVector<StageId, char> again_at_once = {};  // a stage recomputes all of its pieces at once, from the first on
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
  const Validated<Schedule>& schedule() const { return schedule_; }
  std::ptrdiff_t nodes() const { return std::ssize(tape_.items); }

 private:
  Validated<Schedule> schedule_;
  SimulateOptions options_;
  ScheduleTape tape_;
  Player player_;
  std::vector<double> from_;
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
  // Where the last gradients of a stage are made. A row of W nodes makes them piece by piece, from the last stage down.
  struct Gradients {
    StageId stage;
    std::uint32_t from, to;     // nodes
    double begin = 0, end = 1;  // which part of the time between them
  };
  std::vector<std::vector<Gradients>> last_gradients_;  // per actor, in order
  std::vector<StorageWire> wires_;                      // per actor
  std::vector<double> for_messages_;                    // per node: seconds that it is longer
  PlayedEnds ends_;
  void find_visits();
  void find_last_gradients();
  void find_for_messages(const PlayTimes&);
  double gather_after(std::uint32_t node, const PlayTimes&) const;
  double stored(std::uint32_t node, const PlayTimes&, double start);
  double summed(std::size_t actor, const PlayTimes&) const;
};

}  // namespace stretto

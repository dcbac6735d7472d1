// Schedules by shape, built once each and played with the times of many configurations.
//
//   Shapes shapes;
//   Shape& s = shapes.of(keys);                                     // keys.microbatches may be many
//   std::vector<double> ends = s.ends(model.times(), links);        // per actor, of the whole step
//
// A schedule of many microbatches repeats itself: what is built has at most about five per actor, and its last round
// tells what every further one takes. So numbers of microbatches share what is built, and so do recompute and none.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "stretto/plan/problem.h"
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

// One schedule that is played again and again.
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
  std::vector<std::uint32_t> turn_at_;  // per node: its place in turns_, and one more; 0: none
  enum Paired : char { none, first, second };
  std::vector<char> paired_;  // per node
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

// How many stages of microbatches an actor keeps when it keeps the most.
struct MostKept {
  double until_i = 0, until_w = 0, for_w = 0;
};

// A schedule of so many microbatches. Its actions, of which there may be very many, are there from the first time on
// that it is played.
class Rounds {
 public:
  Rounds(const RunKeys&, int microbatches);

  const Schedule& outline() const { return outline_; }  // where stages are; without actions
  const MostKept& in_flight(ActorId a) const { return flights_[a]; }
  const std::vector<double>& unit_ends() const { return unit_ends_; }  // with 1 per phase of all chunks of an actor
  PlayedSchedule& played(bool remakes);

 private:
  RunKeys keys_;
  Schedule outline_;
  IdVector<ActorId, MostKept> flights_;
  std::vector<double> unit_ends_;
  std::unique_ptr<PlayedSchedule> played_[2];  // remakes
};

class Shape {
 public:
  // `longer`: of all its microbatches, or of some of them with `shorter` of one less per actor.
  Shape(const RunKeys&, Rounds& longer, Rounds* shorter);

  // After all microbatches.
  PlayedEnds ends(const PlayTimes&, const ActorLinks&);
  double unit() const { return unit_; }  // with 1 per phase of all chunks of an actor
  MostKept in_flight(ActorId a) const;
  const Schedule& outline() const { return longer_.outline(); }
  const Schedule& schedule() { return longer_.played(remakes_).schedule(); }  // perhaps with fewer microbatches
  const Schedule* fewer() { return shorter_ ? &shorter_->played(remakes_).schedule() : nullptr; }
  double rounds() const { return rounds_; }  // how often what `schedule` has more than `fewer` comes again
  std::ptrdiff_t nodes();

 private:
  std::vector<double> continued(std::vector<double> ends, const std::vector<double>& before) const;

  Rounds& longer_;
  Rounds* shorter_ = nullptr;
  double rounds_ = 0;     // of one microbatch per actor, beyond those of `longer_`
  bool remakes_ = false;  // something is made again before every backward
  double unit_ = 0;
};

// Calls function(0), function(1), ... function(n - 1), perhaps several at a time.
using Each = std::function<void(std::size_t n, const std::function<void(std::size_t)>& function)>;

class Shapes {
 public:
  Shape& of(const RunKeys&);  // throws what the builder throws
  // What is not there yet, all at once: shapes, or also what it takes to play them.
  void make(const std::vector<const RunKeys*>&, const Each&);
  void make_played(const std::vector<const RunKeys*>&, const Each&);
  std::size_t size() const { return all_.size(); }
  std::size_t schedules() const { return rounds_.size(); }

 private:
  std::unique_ptr<Rounds>& rounds(const RunKeys&, int microbatches);
  std::map<std::tuple<std::string_view, int, int, int>, std::unique_ptr<Rounds>> rounds_;
  std::map<std::tuple<std::string_view, int, int, int, bool>, std::unique_ptr<Shape>> all_;
};

}  // namespace stretto

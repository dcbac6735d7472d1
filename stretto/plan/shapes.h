// Schedules by shape, built once each and played with the times of many configurations.
//
//   Shapes shapes;
//   Shape& s = shapes.of(keys);                                     // keys.microbatches may be many
//   std::vector<double> ends = s.ends(model.times(), links);        // per actor, of the whole step
//
// A schedule of many microbatches repeats itself: what is built has at most about five per actor, and its last round
// tells what every further one takes.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "stretto/plan/problem.h"
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
};
using ActorLinks = std::function<Link(int from, int to)>;

// One schedule that is played again and again.
class PlayedSchedule {
 public:
  PlayedSchedule(Validated<Schedule>, bool remakes);
  PlayedSchedule(const PlayedSchedule&) = delete;

  const std::vector<double>& ends(const PlayTimes&, const ActorLinks&);
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
  };
  std::vector<Turn> turns_;
  std::vector<std::pair<std::uint32_t, StageId>> alone_;  // an I without one
  struct Pair {                                           // members of an overlap group
    std::uint32_t first, second;
  };
  std::vector<Pair> pairs_;
  void find_pairs();
  void set_pair(const Pair&, const PlayTimes&);
};

// How many stages of microbatches an actor keeps when it keeps the most.
struct MostKept {
  double until_i = 0, until_w = 0, for_w = 0;
};

class Shape {
 public:
  explicit Shape(const RunKeys&);

  // When each actor's last action ends, after all microbatches.
  std::vector<double> ends(const PlayTimes&, const ActorLinks&);
  double unit();  // with 1 per phase of all chunks of an actor
  const MostKept& in_flight(ActorId a) const { return flights_[a]; }
  const Schedule& schedule() const { return longer_->schedule(); }  // perhaps with fewer microbatches
  std::ptrdiff_t nodes() const { return longer_->nodes() + (shorter_ ? shorter_->nodes() : 0); }

 private:
  double rounds_ = 0;     // of one microbatch per actor, beyond those of `longer_`
  bool remakes_ = false;  // something is made again before every backward
  std::unique_ptr<PlayedSchedule> shorter_, longer_;
  std::optional<double> unit_;
  IdVector<ActorId, MostKept> flights_;
};

// Calls function(0), function(1), ... function(n - 1), perhaps several at a time.
using Each = std::function<void(std::size_t n, const std::function<void(std::size_t)>& function)>;

class Shapes {
 public:
  Shape& of(const RunKeys&);                                   // throws what the builder throws
  void make(const std::vector<const RunKeys*>&, const Each&);  // those that are not there yet, all at once
  std::size_t size() const { return all_.size(); }

 private:
  std::unique_ptr<Shape>& place(const RunKeys&);
  std::map<std::tuple<std::string_view, int, int, int, bool>, std::unique_ptr<Shape>> all_;
};

}  // namespace stretto

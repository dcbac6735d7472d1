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

// A W fills the gaps of what stands before it in its row: what it adds to a forward, or to an I.
struct PlayTimes {
  StageCosts stages;
  IdVector<StageId, double> w_after_f, w_after_i;
};
using ActorLinks = std::function<Link(int from, int to)>;

// One schedule that is played again and again.
class PlayedSchedule {
 public:
  explicit PlayedSchedule(Validated<Schedule>);
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
  struct Filler {  // a W with something before it
    std::uint32_t node;
    StageId stage;
    Phase before;
  };
  std::vector<Filler> fillers_;
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
  double rounds_ = 0;  // of one microbatch per actor, beyond those of `longer_`
  std::unique_ptr<PlayedSchedule> shorter_, longer_;
  std::optional<double> unit_;
  IdVector<ActorId, MostKept> flights_;
};

class Shapes {
 public:
  Shape& of(const RunKeys&);  // throws what the builder throws
  std::size_t size() const { return all_.size(); }

 private:
  std::map<std::tuple<std::string_view, int, int, int>, std::unique_ptr<Shape>> all_;
};

}  // namespace stretto

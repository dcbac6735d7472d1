// Schedules by shape, built once each and played with the times of many configurations.
//
//   Shapes shapes;
//   Shape& s = shapes.of(keys);                                     // keys.microbatches may be many
//   PlayedEnds ends = s.ends(model.times(false), links);            // per actor, of the whole step
//
// A schedule of many microbatches repeats itself: what is built has at most about five per actor, and its last round
// tells what every further one takes. So numbers of microbatches share what is built, and so do recompute and none.
#pragma once
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "stretto/plan/inner/played_schedule.h"
#include "stretto/plan/planned.h"

namespace stretto {

// How many stages of microbatches an actor keeps when it keeps the most.
struct MostKept {
  double until_i = 0, until_w = 0, for_w = 0;
};

// A schedule for one number of microbatches. Its actions, which may be very many, are built when it is first played.
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
  // `longer` has all microbatches; or some, and `shorter` has one fewer per actor, to extrapolate.
  Shape(const RunKeys&, Rounds& longer, Rounds* shorter);

  // After all microbatches.
  PlayedEnds ends(const PlayTimes&, const ActorLinks&);
  double unit() const { return unit_; }  // with 1 per phase of all chunks of an actor
  MostKept in_flight(ActorId a) const;
  const Schedule& outline() const { return longer_.outline(); }
  const Schedule& schedule() { return *validated(); }  // perhaps with fewer microbatches
  const Validated<Schedule>& validated() { return longer_.played(remakes_).schedule(); }
  const Schedule* fewer() { return shorter_ ? &*shorter_->played(remakes_).schedule() : nullptr; }
  double rounds() const { return rounds_; }  // how often what `schedule` has more than `fewer` comes again
  std::ptrdiff_t nodes();

 private:
  std::vector<double> continued(std::vector<double> ends, const std::vector<double>& before) const;

  Rounds& longer_;
  Rounds* shorter_ = nullptr;
  double rounds_ = 0;     // of one microbatch per actor, beyond those of `longer_`
  bool remakes_ = false;  // every backward begins with recompute
  double unit_ = 0;
};

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

// Everything that can be wrong with a schedule, all of it at once, each fault with its place, reason and fix.
//
//   Validation v = validate(schedule);
//   if (!v.ok()) fmt::print("{}{}", marked_rows(schedule, v), v.str());
//   refuse(v.all_faults());
//   Validated<Schedule> s = valid(schedule);      // both in one: what simulations take
//
// Whether the schedule can deadlock over channels of limited capacity is for prove().
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/schedule/schedule.h"

namespace stretto {

struct ValidateOptions {
  int actors = 0, stages = 0, microbatches = 0;  // what the schedule should have; 0: what it says itself
  double memory = 0;                             // cap in full-stage activations per actor; 0: none
  bool forward_only = false;                     // nothing is differentiated: backwards may be missing
  double freed_by_i = 0;  // share of an activation that I frees already when the cap is counted, as in Request
};

struct ActionPlace {
  ActorId actor = {};
  int position = 0;  // positions count from 0; members of an overlap group count one by one
  auto operator<=>(const ActionPlace&) const = default;
};

struct Finding {
  enum class Kind : std::uint8_t {
    shape,          // the wrong number of rows, stages or microbatches; a placement that is none
    unknown,        // a stage, microbatch, sequence segment or pipe that does not exist
    missing,        // an action that must be there
    twice,          // an action that is there already
    split,          // I without W, W without I, B beside I or W
    place,          // on an actor that does not hold the stage
    order,          // before what it needs on the same actor
    overlap,        // members of an overlap group depend on each other or stand apart
    cycle,          // actors wait for each other in a circle, whatever the channels hold
    memory,         // above the cap
    deadlock,       // found by prove(): actors wait for each other because a channel is full
    overtaking,     // found by prove(): messages are wanted in another order than they are sent
    communication,  // found by check_communication(): cells of a file that are not what the schedule implies
    accumulation,   // a note: gradients are not added in ascending microbatch order
    idle,           // a note: an actor without actions
  } kind = Kind::shape;
  Fault fault;
  std::vector<ActionPlace> culprits;  // the existing actions it is about
};

struct Validation {
  std::vector<Finding> faults, notes;
  std::vector<double> peak;  // per actor, in full-stage activations; empty when the shape is wrong

  bool ok() const { return faults.empty(); }
  std::vector<Fault> all_faults() const;
  std::string str() const;  // faults, then notes, one per line
};

Validation validate(const Schedule&, const ValidateOptions& = {});

// What a validator found no fault in: who takes one need not look again. Only valid() makes them.
template <class T>
class Validated {
 public:
  const T& operator*() const { return value_; }
  const T* operator->() const { return &value_; }

 private:
  explicit Validated(T value) : value_(std::move(value)) {}
  friend Validated<Schedule> valid(Schedule, const ValidateOptions&);
  T value_;
};

// Throws all faults, or else returns the schedule.
Validated<Schedule> valid(Schedule, const ValidateOptions& = {});

// The rows around the culprits as a small table, each culprit in brackets.
std::string marked_rows(const Schedule&, const Validation&, std::size_t columns = 16);

}  // namespace stretto

// What one whole step of a program takes, instruction by instruction: prologue, messages, collectives, sums of
// gradients that go on beside tasks, epilogue; and what a step adds when others follow it at once.
//
//   StepTime t = step_time(*compiled.program, Cluster{.machine = {.flops = 50e9}});
//   fmt::print("{:.3f} s, {:.3f} s of it waiting for sums of gradients\n", t.seconds, t.exposed);
#pragma once
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "stretto/cost/machine.h"
#include "stretto/program/program.h"
#include "stretto/schedule/timeline.h"
#include "stretto/simulate/prices.h"

namespace stretto {

// Where the time of an actor goes, in seconds.
struct Spent {
  double products = 0, attention = 0, elements = 0, collectives = 0;  // of tasks; what is waited for of collectives
  double messages = 0, sums = 0, gathers = 0;                         // what is waited for of them
  double update = 0;                                                  // before and after the microbatches
  double bubble = 0;                                                  // all else
  double busy() const { return products + attention + elements + collectives + messages + sums + gathers + update; }
  void add(const Priced& p, bool outside) {
    if (outside)
      update += p.seconds();
    else
      products += p.products, attention += p.attention, elements += p.elements, collectives += p.collectives;
  }
  // Each with its name, as tables and columns have them.
  std::array<std::pair<std::string_view, double>, 9> parts() const;
  std::string_view limit() const;  // the name of the largest
};

struct StepTime {
  double seconds = 0;  // one step alone
  double sums = 0;     // the busiest actor's sums and reduce-scatters of gradients, one after the other
  double exposed = 0;  // ... what it waits for them
  double gathers = 0;  // likewise: parameters that are gathered ahead
  double gathers_exposed = 0;
  double worked = 0;  // in tasks, by the actor that is in them for the longest
  double last = 0;    // when the last action ended
  double bubble = 0;  // share of all actors' time in which they are in no task
  Spent spent = {};   // by the busiest actor: adds up to `seconds`
};

// Every rank has the cluster's machine. The ranks of an actor do the same at the same time, so that one of them is
// played; a collective takes as long as in the slowest of its groups.
StepTime step_time(const Program&, const Cluster&);
// Of a program that is not proved: none if it would wait forever.
std::optional<double> step_seconds(const Program&, const Cluster&);

// Of steps that follow each other at once, when an actor that has finished goes on with the next one (next_step.h).
double step_period(const Program&, const Cluster&);

// The same as a picture: who does what when, collectives that go on beside tasks, and messages if they are asked for.
struct PlayedStep {
  StepTime time;
  Timeline timeline;
};
PlayedStep play_step(const Program&, const Cluster&, bool messages = false);

}  // namespace stretto

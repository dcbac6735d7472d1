// What is predicted of one configuration: seconds of a step, bytes of a rank, and how exactly.
//
//   const Planned& x = plan.best.front();
//   fmt::print("{}: {} s, {} bytes, by its {}\n", x.keys.str(), x.seconds, x.bytes, name_of(x.exact));
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "stretto/plan/problem.h"
#include "stretto/simulate/step_time.h"

namespace stretto {

// Bytes of a rank, by what holds them.
struct MemoryParts {
  double params = 0, gradients = 0, state = 0;
  double activations = 0;  // kept from action to action
  double beside = 0;       // while an action works: temporaries, gathered parameters, scratch
  double messages = 0;     // on their way
  double gaps = 0;         // planned and not used at the fullest moment

  double states() const { return params + gradients + state; }
  double total() const { return states() + activations + beside + messages + gaps; }
};

enum class Exactness : std::uint8_t { bound, stage, schedule, program };
std::string_view name_of(Exactness);

struct Planned {
  RunKeys keys;  // with the stages that were assumed
  double seconds = 0, bytes = 0, bubble = 0;
  // Of the busiest actor. Until it is compiled, what it waits for storage under a pipeline counts as bubble.
  Spent time = {};
  MemoryParts memory = {};
  Exactness exact = Exactness::bound;
  std::string refused = {};                     // what compile says against it; "": nothing
  std::shared_ptr<const Program> program = {};  // of one that was compiled
};

std::shared_ptr<const Program> program_of(const PlanProblem&, const Planned&);  // its own, or compiled now

double model_flops(const PlanProblem&);  // of a step, all ranks together, without recompute

// Calls function(0), function(1), ... function(n - 1), perhaps several at a time.
using Each = std::function<void(std::size_t n, const std::function<void(std::size_t)>& function)>;
Each one_by_one();

}  // namespace stretto

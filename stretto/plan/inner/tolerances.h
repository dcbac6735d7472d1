// How far the planner trusts which of its models: all of its tolerances, each with its reason. What a user sets is in
// PlanOptions: `margin`, within which configurations count as equally good, and `memory`.
#pragma once
#include <cstddef>

namespace stretto::tolerance {

// A step shorter by less is a tie, which memory and plainer keys decide: predictions are no better than that.
constexpr double tie = 0.005;
// Stages with different recompute are worth their long lists of keys if they save half a percent.
constexpr double worth_differing = 0.995;
// Stages and schedules know nothing of gaps between buffers, nor of buffers that programs reuse: what is so much
// larger than a rank may still fit.
constexpr double memory_slack = 1.03;
// Programs of one schedule differ from its play by up to 4% more or less than those of another: the best of every
// schedule that is so close to the best program is compiled.
constexpr double rival = 1.04;

// Within the first so many places anything may turn out to be the best: without a pipeline, where collectives go on
// beside everything, programs have been 15% shorter than their schedules.
constexpr std::size_t places = 20;
// ... as long as all compiled programs have so many tasks together, about a second of work. Large programs are
// compiled for the first `PlanOptions::compiled` places, and while what is left may be faster than the best of them.
constexpr double most_tasks = 100'000;
// No search compiles more, whatever it finds.
constexpr std::size_t most_programs = 48;

}  // namespace stretto::tolerance

// Collectives of tasks beside other work: within one action, and within an overlap group as one. Where it makes the
// predicted step shorter, also beside weight gradients of the action before, and two microbatches' forwards or
// backwards beside each other; not in programs whose actions run more than 8,000 tasks, where trying that would take
// too long.
//
//   overlap_calls(program, {.cluster = cluster, .predicted = [&](const Program& p) { return takes(p, cluster); }});
//
// Several ways are tried, one of them to leave all in place: the one whose predicted step is the shortest is taken.
//
// A task that waits for its collectives in place becomes parts: each collective starts right after its last operand is
// made and is awaited right before its first reader, with calls of the same and of other tasks of the region between
// them (weight gradients, the other member of the group), in the order of interleave.h. What depends on what, and so
// every bit, stays as it was. All ranks of an actor have one list, so they start their collectives in one order.
#pragma once
#include <functional>
#include <optional>
#include <span>

#include "stretto/cost/machine.h"
#include "stretto/program/program.h"

namespace stretto {

// What of the neighbouring turns a turn's collectives may go on beside, and by what times turns are arranged.
struct Arrangement {
  bool late = true;         // uses arrival times; almost every turn then needs an order of its own
  bool pairs = false;       // regions_of
  std::size_t weights = 0;  // order_calls: tasks that may be left to the next turn
  bool unhurried = false;
  bool operator==(const Arrangement&) const = default;
};
// What goes on together takes memory: a way is taken if its step is that much of the best before it, or shorter.
constexpr double worth_arranging = 0.998;
// Those that are tried for a program whose actions run so many tasks, all actors together.
std::span<const Arrangement> arrangements(std::size_t tasks);
// Kernels take long there and links are fast, so that little is put beside a collective. That is better where it is
// badly known when messages come.
Cluster unhurried(Cluster);
// Turns whose messages are nearly equally late share an order.
double rounded_lateness(double seconds);

struct OverlapOptions {
  Cluster cluster = {};  // for whose machines and links calls are ordered
  // What a step takes there; none: it would wait forever.
  std::function<std::optional<double>(const Program&)> predicted = nullptr;
  bool apart = false;  // work_of
};

// All code is complete and memory is not planned yet. Says how many ways were tried.
int overlap_calls(Program&, const OverlapOptions&);

}  // namespace stretto

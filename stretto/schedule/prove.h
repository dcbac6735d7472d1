// The proof that a schedule cannot deadlock over channels of a given capacity, and the smallest capacity that works.
//
//   Proof p = prove(schedule, {.capacity = 1});
//   if (!p.ok() && p.smallest) fmt::print("{}; a capacity of {} is enough\n", p.faults[0].fault.str(), *p.smallest);
//
// The graph: nodes are post-receive, receive (consume), send and send-complete of every message in two consecutive
// steps; edges are program order, message order (send-complete k -> consume k) and capacity: post-receive k-C ->
// send-complete k per channel. A posted receive has a buffer of its own, so a message occupies its channel only until
// then, and capacity 0 is the rendezvous. The graph is acyclic exactly when actors that block at receives and sends
// always finish. Its edges follow from the order of the steps and are never stored: nodes are removed in topological
// order, and what cannot be removed is the deadlock. Linear in the number of actions, also for the smallest capacity:
// what could be removed at one capacity can be removed at every larger one, so the search goes on where it stopped.
//
// A capacity is what lies between two stages, per kind: the two pipes of a bidirectional schedule have half of it each.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stretto/schedule/messages.h"
#include "stretto/schedule/validate.h"

namespace stretto {

// How a transport finds the message that a receive means.
enum class Matching : std::uint8_t {
  tagged,   // by name, in any order
  channel,  // first in, first out per channel
  pair,     // first in, first out per pair of actors: one channel for all they exchange
};

struct ProofOptions {
  static constexpr int unlimited = 1 << 30;
  int capacity = unlimited;  // messages between two stages of one kind; 0: a send waits for its receive
  Matching matching = Matching::channel;
};

struct Proof {
  std::vector<Finding> faults;       // deadlock, overtaking
  std::optional<int> smallest = {};  // the smallest capacity of all channels without deadlock
  std::uint64_t overtaking = 0;      // pairs of messages of one channel, sent in one order and wanted in the other
  std::vector<Channel> channels;
  // Per channel, the most messages that left before their receive was posted, when every action starts as soon as it
  // can and takes one unit of time (B two). Empty when there is a deadlock.
  std::vector<int> occupancy;

  bool ok() const { return faults.empty(); }
};

// For a schedule that validate() accepts.
Proof prove(const Schedule&, const ProofOptions& = {});

// For any traffic; `name` tells the action of an actor at a position.
using ActionName = std::function<std::string(ActorId, int position)>;
Proof prove(const Traffic&, const ProofOptions&, const ActionName& name);

}  // namespace stretto

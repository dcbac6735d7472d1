// In-order actors that play lists of nodes and send each other messages: what every simulation is lowered to.
//
//   Tape tape;                      // nodes are numbered row after row
//   tape.rows = {0, 2, 3};          // actor 0 plays nodes 0 and 1, actor 1 plays node 2
//   tape.durations = {1, 1, 2};
//   tape.edges = {{.to = 2, .link = 0, .delay = 0.1}};   // node 0 sends to node 2
//   tape.first_edge = {0, 1, 1, 1};
//   Player player(tape);
//   if (player.stuck().empty()) player.play({0, 0});
//
// Any topological order of program order and messages gives the same times, because a link belongs to one source and
// one target and so carries its messages in the source's order. It is found once; every further play is one pass.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace stretto {

struct Edge {
  std::uint32_t to = 0;    // the node that needs the message
  std::uint32_t link = 0;  // which link carries it; counts only under contention
  double delay = 0;
  double early = 0;  // it leaves so long before its node ends
};

struct Tape {
  std::vector<std::uint32_t> rows;        // actors + 1 offsets
  std::vector<double> durations;          // per node
  std::vector<Edge> edges;                // grouped by their source node, in order
  std::vector<std::uint32_t> first_edge;  // nodes + 1 offsets
  std::uint32_t links = 0;
  bool contention = false;  // a link carries one message at a time

  std::uint32_t actors() const { return rows.size() - 1; }
  std::uint32_t nodes() const { return durations.size(); }
};

class Player {
 public:
  explicit Player(const Tape& tape);

  // Per actor the first node that can never start, if any; empty when all nodes can be played.
  const std::vector<std::optional<std::uint32_t>>& stuck() const { return stuck_; }

  // Actors start at the given times; afterwards start(), end(), sender() and sent() hold. Needs stuck().empty().
  // `prepare` is called before each node, with when its actor is free and when its last message arrives: it may still
  // change how long the tape says that this node and the later ones of its actor take.
  using Prepare = std::function<void(std::uint32_t node, double free, double ready)>;
  void play(const std::vector<double>& from, const Prepare& prepare = {});

  double start(std::uint32_t node) const { return start_[node]; }
  double end(std::uint32_t node) const { return start_[node] + tape_.durations[node]; }
  double ready(std::uint32_t node) const { return ready_[node]; }  // when its last message arrived
  std::optional<std::uint32_t> sender(std::uint32_t node) const { return sender_[node]; }  // of that message
  double sent(std::uint32_t edge) const { return sent_[edge]; }                            // when a message left
  const std::vector<double>& ends() const { return free_; }  // per actor, of its last node

 private:
  const Tape& tape_;
  std::vector<std::uint32_t> order_, actor_of_;
  std::vector<std::optional<std::uint32_t>> stuck_, sender_;
  std::vector<double> start_, ready_, sent_, free_, link_free_;
};

}  // namespace stretto

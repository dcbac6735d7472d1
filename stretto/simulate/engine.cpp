#include "stretto/simulate/engine.h"

#include <algorithm>
#include <limits>

#include "stretto/base/error.h"
#include "stretto/schedule/in_order.h"

namespace stretto {

Player::Player(const Tape& tape) : tape_(tape) {
  const std::uint32_t nodes = tape.nodes(), actors = tape.actors();
  std::vector<std::uint32_t> pending(nodes), head(tape.rows.begin(), tape.rows.end() - 1);
  actor_of_.resize(nodes);
  for (std::uint32_t a = 0; a < actors; ++a) {
    std::fill(actor_of_.begin() + tape.rows[a], actor_of_.begin() + tape.rows[a + 1], a);
  }
  for (const Edge& e : tape.edges) ++pending[e.to];

  // An actor waits for the last message of a node.
  order_.reserve(nodes);
  InOrder<std::uint32_t> order(actors, nodes);
  order.run([&](ActorId actor) -> std::optional<std::uint32_t> {
    const std::uint32_t a = actor.value;
    for (std::uint32_t& n = head[a]; n < tape.rows[a + 1]; ++n) {
      if (pending[n] > 0) return n;
      order_.push_back(n);
      for (std::uint32_t i = tape.first_edge[n]; i < tape.first_edge[n + 1]; ++i)
        if (const std::uint32_t to = tape.edges[i].to; --pending[to] == 0) order.happened(to);
    }
    return std::nullopt;
  });
  if (!order.finished())
    for (std::uint32_t a = 0; a < actors; ++a) stuck_.push_back(order.waits(ActorId(a)));
  start_.resize(nodes);
  ready_.resize(nodes);
  sender_.resize(nodes);
  sent_.resize(tape.edges.size());
}

void Player::play(const std::vector<double>& from, const Prepare& prepare) {
  STRETTO_ASSERT(stuck_.empty() && from.size() == tape_.actors(), "only what can be played is played");
  constexpr double never = -std::numeric_limits<double>::infinity();
  free_ = from;
  link_free_.assign(tape_.links, never);
  std::fill(ready_.begin(), ready_.end(), never);
  std::fill(sender_.begin(), sender_.end(), std::nullopt);
  for (const std::uint32_t n : order_) {
    double& free = free_[actor_of_[n]];
    if (prepare) prepare(n, free, ready_[n]);
    start_[n] = std::max(free, ready_[n]);
    free = start_[n] + tape_.durations[n];
    for (std::uint32_t i = tape_.first_edge[n]; i < tape_.first_edge[n + 1]; ++i) {
      const Edge& e = tape_.edges[i];
      double leaves = free - e.early;
      if (tape_.contention) {
        leaves = std::max(leaves, link_free_[e.link]);
        link_free_[e.link] = leaves + e.delay;
      }
      sent_[i] = leaves;
      if (leaves + e.delay > ready_[e.to]) ready_[e.to] = leaves + e.delay, sender_[e.to] = n;
    }
  }
}

}  // namespace stretto

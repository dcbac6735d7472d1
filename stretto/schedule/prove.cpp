#include "stretto/schedule/prove.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

#include "stretto/schedule/in_order.h"

namespace stretto {

namespace {

constexpr std::uint32_t rounds = 2;  // consecutive steps: what the second waits for, every later one does too

// Removes the nodes of the graph in topological order, all that can be. Every actor stands at its first node that is
// left. Messages of a channel leave one after the other, in the order of their sends.
class Removal {
 public:
  // Times are kept for occupancy() only.
  Removal(const Traffic& t, int capacity, bool timed)
      : t_(t),
        capacity_(capacity),
        order_(t.actors.size(), t.messages.size()),
        at_(t.actors.size()),
        channels_(t.channels.size()),
        posted_(t.messages.size()) {
    std::size_t base = 0;
    for (std::size_t c = 0; c < channels_.size(); ++c) {
      channels_[c].base = base;
      base += t.channels[c].messages;
    }
    by_send_.resize(base);
    for (std::uint32_t m = 0; m < t.messages.size(); ++m)
      by_send_[channels_[t.messages[m].channel].base + t.messages[m].sent] = m;
    if (timed) {
      times_.resize(rounds * t.messages.size());
      left_at_.resize(rounds * base);
      posts_at_.resize(rounds * base);
    }
  }

  void remove() {
    order_.run([&](ActorId a) { return advance(a); });
  }

  const InOrder<std::uint32_t>& order() const { return order_; }  // of messages
  bool finished() const { return order_.finished(); }
  std::uint32_t message(ActorId actor) const { return *order_.waits(actor); }
  const MessageStep& step(ActorId actor) const { return t_.actors[actor][at_[actor].step]; }
  std::uint32_t round(ActorId actor) const { return at_[actor].round; }
  // Whether the message an actor waits for was sent and only lacks room (or, at capacity 0, a posted receive).
  bool full(ActorId actor) const {
    const Message& m = t_.messages[message(actor)];
    return channels_[m.channel].started > index(m, at_[actor].round);
  }

  // Raises the capacity to the next one that lets some message leave; false when none does.
  bool widen() {
    std::optional<u64> next;
    for (const ChannelState& c : channels_)
      if (c.left < c.started) next = std::min(next.value_or(c.held + 1), c.held + 1);
    if (!next) return false;
    capacity_ = *next;
    for (std::uint32_t c = 0; c < channels_.size(); ++c) flush(c);
    return true;
  }
  int capacity() const { return capacity_; }

  std::vector<int> occupancy() const {
    std::vector<int> most(channels_.size());
    for (std::size_t c = 0; c < channels_.size(); ++c) {
      const std::size_t n = rounds * t_.channels[c].messages, base = rounds * channels_[c].base;
      std::size_t posted = 0;
      for (std::size_t k = 0; k < n; ++k) {
        while (posted <= k && posts_at_[base + posted] <= left_at_[base + k]) ++posted;
        most[c] = std::max<int>(most[c], k + 1 - posted);
      }
    }
    return most;
  }

 private:
  struct At {
    std::uint32_t step = 0, round = 0;
    std::int64_t clock = 0;
  };
  struct ChannelState {
    std::size_t base = 0;
    std::uint64_t started = 0, left = 0, posts = 0;
    std::uint64_t held = 0;  // left, but not posted
  };
  struct Times {
    std::int64_t started = 0, posted = 0;
  };

  std::uint64_t index(const Message& m, std::uint32_t round) const {
    return u64{round} * t_.channels[m.channel].messages + m.sent;
  }

  // Lets go what can leave: into its posted buffer, or into the channel while it has room.
  void flush(std::uint32_t channel) {
    ChannelState& c = channels_[channel];
    const Channel& of = t_.channels[channel];
    for (; c.left < c.started; ++c.left) {
      const std::uint64_t k = c.left;
      const std::uint32_t round = k >= of.messages;
      const std::uint32_t message = by_send_[c.base + k - round * u64{of.messages}];
      const bool posted = posted_[message] > round;
      if (!posted && c.held >= capacity_) return;
      if (!posted) ++c.held;
      if (!times_.empty()) {
        const Times& m = times_[rounds * message + round];
        const std::int64_t room = k < capacity_             ? 0
                                  : c.posts > k - capacity_ ? posts_at_[rounds * c.base + k - capacity_]
                                                            : m.posted;
        left_at_[rounds * c.base + k] = std::max(m.started, room);
      }
      order_.happened(message);
    }
  }

  // The message it waits for.
  std::optional<std::uint32_t> advance(ActorId actor) {
    using Kind = MessageStep::Kind;
    const auto& steps = t_.actors[actor];
    At& at = at_[actor];
    for (;; ++at.step) {
      if (at.step == steps.size()) {
        if (steps.empty() || at.round + 1 == rounds) return std::nullopt;
        at.step = 0, ++at.round;
      }
      const MessageStep& s = steps[at.step];
      if (s.kind == Kind::run) {
        at.clock += s.message;
        continue;
      }
      const Message& m = t_.messages[s.message];
      ChannelState& c = channels_[m.channel];
      const std::uint64_t k = index(m, at.round);
      if (s.kind == Kind::post) {
        if (!times_.empty()) {
          posts_at_[rounds * c.base + c.posts++] = times_[rounds * s.message + at.round].posted = at.clock;
        }
        ++posted_[s.message];
        if (c.left > k) --c.held;
        flush(m.channel);
      } else if (s.kind == Kind::send) {
        if (!times_.empty()) times_[rounds * s.message + at.round].started = at.clock;
        ++c.started;
        flush(m.channel);
      } else if (c.left > k) {
        if (!times_.empty()) at.clock = std::max(at.clock, left_at_[rounds * c.base + k]);
      } else {
        return s.message;
      }
    }
  }

  const Traffic& t_;
  std::uint64_t capacity_;
  InOrder<std::uint32_t> order_;
  IdVector<ActorId, At> at_;
  std::vector<ChannelState> channels_;
  std::vector<std::uint8_t> posted_;              // per message: in how many rounds
  std::vector<Times> times_;                      // per message and round
  std::vector<std::uint32_t> by_send_;            // messages, channel by channel, in the order of sends
  std::vector<std::int64_t> left_at_, posts_at_;  // times, channel by channel, in the order of leaving and of posts
};

class Prover {
 public:
  Prover(const Traffic& t, const ProofOptions& o, const ActionName& name)
      : t_(t), o_(o), name_(name), each_(std::max(0, o.capacity) / t.shares) {}

  Proof prove() {
    proof_.channels = t_.channels;
    if (o_.matching != Matching::tagged) overtaking();
    Removal search(t_, 0, false);
    search.remove();
    while (!search.finished() && search.widen()) search.remove();
    if (search.finished()) proof_.smallest = search.capacity() * t_.shares;
    Removal chosen(t_, each_, true);
    chosen.remove();
    if (chosen.finished()) {
      proof_.occupancy = chosen.occupancy();
    } else {
      deadlocks(chosen);
    }
    return std::move(proof_);
  }

 private:
  static ActionPlace place(ActorId actor, int position) { return {actor, position}; }
  std::string at(ActorId actor, int position) const {
    return fmt::format("{} (position {})", name_(actor, position), position);
  }
  std::string where(ActorId actor, int position) const {
    return fmt::format("actor {}, position {}, {}", actor.value, position, name_(actor, position));
  }

  void deadlocks(const Removal& stuck) {
    stuck.order().circles([&](ActorId a) { return next(stuck, a); },
                          [&](const std::vector<ActorId>& circle) { deadlock(stuck, circle); });
    STRETTO_ASSERT(!proof_.faults.empty(), "traffic of a schedule that is not valid");
  }

  static bool receives(const Removal& stuck, ActorId actor) {
    return stuck.step(actor).kind == MessageStep::Kind::receive;
  }

  // A send waits for its target. A receive waits for its source, or, when the message was sent but found no room
  // because the actor wants others of the channel first (possible with tags only), for the actor itself.
  ActorId next(const Removal& stuck, ActorId actor) const {
    const Channel& c = t_.channels[t_.messages[stuck.message(actor)].channel];
    return receives(stuck, actor) && !stuck.full(actor) ? c.source : c.target;
  }

  void deadlock(const Removal& stuck, const std::vector<ActorId>& circle) {
    Finding f{Finding::Kind::deadlock, {}, {}};
    std::string chain;
    for (const ActorId a : circle) {
      const Message& m = t_.messages[stuck.message(a)];
      const Channel& c = t_.channels[m.channel];
      const int position = stuck.step(a).position;
      chain += fmt::format("{} waits at {}{} ", chain.empty() ? fmt::format("actor {}", a.value) : ", which",
                           at(a, position), stuck.round(a) ? " of the next step" : "");
      f.culprits.push_back({a, position});
      if (!receives(stuck, a)) {
        chain += fmt::format("to send to actor {} ({})", c.target.value,
                             each_ == 0 ? "no receive is posted" : fmt::format("channel {} is full", c.str()));
      } else if (stuck.full(a)) {
        chain += fmt::format("for a message of channel {}, which is full of messages it takes later", c.str());
      } else {
        chain += fmt::format("for a message from actor {} ({}, position {})", c.source.value,
                             name_(c.source, m.sent_at), m.sent_at);
        f.culprits.push_back(place(c.source, m.sent_at));
      }
    }
    const ActorId first = circle.front();
    const int position = stuck.step(first).position;
    chain += fmt::format(", which waits at {}", name_(first, position));
    f.fault = {where(first, position),
               o_.capacity >= ProofOptions::unlimited
                   ? "deadlock: " + chain
                   : fmt::format("deadlock at channel capacity {}{}: {}", std::max(0, o_.capacity),
                                 t_.shares > 1 ? " (half for each pipe)" : "", chain),
               proof_.smallest ? fmt::format("a channel capacity of {} is enough", *proof_.smallest)
                               : "no capacity helps: reorder the rows"};
    proof_.faults.push_back(std::move(f));
  }

  void overtaking() {
    std::vector<std::size_t> base;
    std::size_t n = 0;
    for (const Channel& c : t_.channels) base.push_back(n), n += c.messages;
    std::vector<std::uint32_t> by_send(n);  // messages, channel by channel, in the order of sends
    for (std::uint32_t m = 0; m < t_.messages.size(); ++m)
      by_send[base[t_.messages[m].channel] + t_.messages[m].sent] = m;
    for (std::size_t c = 0; c < t_.channels.size(); ++c) {
      const std::span<const std::uint32_t> order(by_send.data() + base[c], t_.channels[c].messages);
      if (std::is_sorted(order.begin(), order.end(),
                         [&](auto x, auto y) { return t_.messages[x].taken < t_.messages[y].taken; })) {
        continue;
      }
      overtaking(t_.channels[c], order);
    }
  }

  void overtaking(const Channel& c, std::span<const std::uint32_t> order) {
    const std::uint64_t pairs = inversions(order);
    proof_.overtaking += pairs;
    // The first pair: a message that one sent before it follows.
    std::size_t k = 1;
    while (t_.messages[order[k - 1]].taken < t_.messages[order[k]].taken) ++k;
    const Message &early = t_.messages[order[k - 1]], &late = t_.messages[order[k]];
    proof_.faults.push_back(
        {Finding::Kind::overtaking,
         {where(c.target, late.taken_at),
          fmt::format("{} pair{} of messages would overtake each other in channel {}: {} is sent before {}, but taken "
                      "after it",
                      pairs, pairs == 1 ? "" : "s", c.str(), at(c.source, early.sent_at), at(c.source, late.sent_at)),
          c.merged ? "use one channel per pair of stages and kind, or match messages by tag"
                   : fmt::format("on actor {} move {} before {}, or match messages by tag", c.target.value,
                                 at(c.target, early.taken_at), at(c.target, late.taken_at))},
         {place(c.target, late.taken_at), place(c.target, early.taken_at)}});
  }

  std::uint64_t inversions(std::span<const std::uint32_t> order) const {
    std::vector<std::uint32_t> tree(order.size() + 1);  // Fenwick tree over `taken`: how many were seen
    std::uint64_t pairs = 0;
    for (std::size_t k = 0; k < order.size(); ++k) {
      const std::uint32_t taken = t_.messages[order[k]].taken;
      std::uint64_t smaller = 0;
      for (std::size_t i = taken; i > 0; i -= i & -i) smaller += tree[i];
      pairs += k - smaller;
      for (std::size_t i = taken + 1; i < tree.size(); i += i & -i) ++tree[i];
    }
    return pairs;
  }

  const Traffic& t_;
  const ProofOptions& o_;
  const ActionName& name_;
  const int each_;  // capacity of one channel
  Proof proof_;
};

}  // namespace

Proof prove(const Traffic& traffic, const ProofOptions& options, const ActionName& name) {
  return Prover(traffic, options, name).prove();
}

Proof prove(const Schedule& s, const ProofOptions& options) {
  const Traffic traffic = traffic_of(s, options.matching == Matching::pair ? ChannelKey::actors : ChannelKey::stages);
  return prove(traffic, options, [&](ActorId actor, int position) { return cell(s.rows[actor][position], s.stages); });
}

}  // namespace stretto

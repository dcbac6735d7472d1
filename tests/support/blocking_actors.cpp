#include "support/blocking_actors.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <tuple>

namespace stretto {

namespace {

using Key = std::tuple<int, int, int, int>;              // pipe, stage, microbatch, segment
using Tag = std::tuple<int, bool, int, int, int, int>;   // step, forward, then the consumer's key
using QueueName = std::tuple<int, int, int, bool, int>;  // source, target, pipe, forward, consumer's stage

class World {
 public:
  World(const Schedule& s, const Blocking& b, std::mt19937& rng) : s_(s), b_(b), rng_(rng), actors_(s.rows.size()) {}

  std::string run() {
    for (const Row& row : s_.rows) {
      std::set<std::uint32_t> closed;
      for (std::size_t i = 0; i < row.size(); ++i) {
        if (row[i].overlap && closed.contains(row[i].overlap)) return "a group torn apart";
        if (i + 1 < row.size() && row[i].overlap != row[i + 1].overlap) closed.insert(row[i].overlap);
      }
      for (const Action& a : row) {
        if (int(a.pipe.value) >= s_.pipes() || int(a.stage.value) >= s_.stages ||
            std::int64_t(a.microbatch.value) >= s_.microbatches || int(a.segment) >= s_.segments) {
          return "no such action";
        }
        if (a.phase == Phase::R) recomputes_.insert(key(a));
        if (s_.pipes() > 1 && (int(a.microbatch.value) >= s_.microbatches / 2) != (a.pipe == up_pipe))
          return "wrong pipe";
      }
    }
    std::vector<std::size_t> order(actors_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    while (true) {
      std::shuffle(order.begin(), order.end(), rng_);
      bool moved = false, all = true;
      for (const std::size_t a : order) {
        const int turns = 1 + int(rng_() % 4);
        for (int t = 0; t < turns && advance(a); ++t) moved = true;
        if (!why_.empty()) return why_;
        all &= actors_[a].step == steps;
      }
      if (all) break;
      if (!moved) return "stuck";
    }
    for (const auto& [name, queue] : queues_) {
      if (!queue.held.empty()) return "messages left over";
    }
    return complete();
  }

 private:
  static constexpr int steps = 2;
  struct Actor {
    int step = 0;
    std::size_t at = 0, end = 0;  // the group [at, end) under way
    enum class Doing { begin, receive, run, send } doing = Doing::begin;
    std::vector<std::pair<QueueName, Tag>> in, out;
    std::size_t done = 0;  // of in or out
    std::set<Tag> arrived;
    std::set<std::size_t> sent;  // of out: gone already
  };
  struct Queue {
    std::deque<Tag> held, posted;  // messages that nobody wants yet; receives whose message has not come
  };
  struct State {
    int forward = 0, full = 0, inputs = 0, weights = 0, recomputed = 0;
  };

  bool strict() const { return b_.matching != Blocking::Matching::tagged; }
  static Key key(const Action& a) { return {a.pipe.value, a.stage.value, int(a.microbatch.value), a.segment}; }
  int holder(int pipe, int stage) const { return s_.actor_of[PipeId(pipe)][StageId(stage)].value; }
  State& state(int step, const Key& k) { return state_[{step, k}]; }
  bool fail(std::string why) {
    why_ = std::move(why);
    return true;
  }

  QueueName queue(int source, int target, const Action& consumer, bool forward) const {
    if (b_.matching == Blocking::Matching::pair) return {source, target, 0, false, 0};
    return {source, target, consumer.pipe.value, forward, consumer.stage.value};
  }

  // One move of one actor; false when it can make none.
  bool advance(std::size_t actor) {
    Actor& a = actors_[actor];
    const Row& row = s_.rows[actor];
    if (a.step == steps) return false;
    if (a.at == row.size()) {
      ++a.step, a.at = 0;
      return true;
    }
    switch (a.doing) {
      case Actor::Doing::begin:
        begin(actor);
        return true;
      case Actor::Doing::receive:
        return receive(actor);
      case Actor::Doing::run:
        execute(actor);
        return true;
      default:
        return send(actor);
    }
  }

  void begin(std::size_t actor) {
    Actor& a = actors_[actor];
    const Row& row = s_.rows[actor];
    a.end = a.at + 1;
    while (row[a.at].overlap && a.end < row.size() && row[a.end].overlap == row[a.at].overlap) ++a.end;
    a.in.clear(), a.out.clear(), a.sent.clear(), a.done = 0;
    for (std::size_t i = a.at; i < a.end; ++i) {
      const Action& x = row[i];
      const bool forward = x.phase == Phase::F, backward = x.phase == Phase::I || x.phase == Phase::B;
      if (!forward && !backward) continue;
      const int from = forward ? x.stage.value - 1 : x.stage.value + 1,
                to = forward ? x.stage.value + 1 : x.stage.value - 1;
      if (from >= 0 && from < s_.stages && holder(x.pipe.value, from) != int(actor)) {
        a.in.push_back({queue(holder(x.pipe.value, from), int(actor), x, forward),
                        {a.step, forward, x.pipe.value, x.stage.value, int(x.microbatch.value), x.segment}});
      }
      if (to >= 0 && to < s_.stages && holder(x.pipe.value, to) != int(actor)) {
        Action consumer = x;
        consumer.stage = StageId(to);
        a.out.push_back({queue(int(actor), holder(x.pipe.value, to), consumer, forward),
                         {a.step, forward, x.pipe.value, to, int(x.microbatch.value), x.segment}});
      }
    }
    for (const auto& [name, tag] : a.in) post(a, name, tag);
    a.doing = Actor::Doing::receive;
  }

  // A posted receive has a buffer of its own: a message that waits in the queue moves there, a later one goes there.
  void post(Actor& a, const QueueName& name, const Tag& tag) {
    auto& queue = queues_[name].held;
    const auto found = std::find(queue.begin(), queue.end(), tag);
    if (strict() && !queue.empty() && found != queue.begin()) return void(fail("another message came first"));
    if (found == queue.end()) return queues_[name].posted.push_back(tag);
    queue.erase(found);
    a.arrived.insert(tag);
  }

  bool receive(std::size_t actor) {
    Actor& a = actors_[actor];
    if (a.done == a.in.size()) {
      a.doing = Actor::Doing::run;
      return true;
    }
    if (!a.arrived.contains(a.in[a.done].second)) return false;
    a.arrived.erase(a.in[a.done].second);
    ++a.done;
    return true;
  }

  void execute(std::size_t actor) {
    Actor& a = actors_[actor];
    const Row& row = s_.rows[actor];
    // All members see the world before the group.
    for (std::size_t i = a.at; i < a.end; ++i) {
      const Action& x = row[i];
      if (holder(x.pipe.value, x.stage.value) != int(actor)) return void(fail("not its stage"));
      const State s = state(a.step, key(x));
      auto near = [&](int stage) -> State {
        if (holder(x.pipe.value, stage) != int(actor))
          return State{.forward = 1, .full = 1, .inputs = 1};  // a message came
        return state(a.step, Key{x.pipe.value, stage, int(x.microbatch.value), x.segment});
      };
      auto segment = [&](int p) { return state(a.step, Key{x.pipe.value, x.stage.value, int(x.microbatch.value), p}); };
      switch (x.phase) {
        case Phase::F:
          if (s.forward) return void(fail("forward twice"));
          if (x.stage.value > 0 && !near(x.stage.value - 1).forward) return void(fail("forward without input"));
          if (x.segment > 0 && !segment(x.segment - 1).forward) return void(fail("forward without the segment before"));
          break;
        case Phase::R:
          if (!s.forward || s.recomputed || s.full || s.inputs) return void(fail("recompute out of place"));
          break;
        case Phase::W:
          if (!s.inputs || s.weights) return void(fail("weight gradient out of place"));
          if (x.segment + 1 < s_.segments && segment(x.segment + 1).inputs && !segment(x.segment + 1).weights)
            return void(fail("weight gradient without that of the segment after it"));
          break;
        default:
          if (!s.forward || s.full || s.inputs || s.weights) return void(fail("backward out of place"));
          if (!s.recomputed && recomputes_.contains(key(x))) return void(fail("backward without its recompute"));
          if (x.stage.value + 1 < s_.stages && !near(x.stage.value + 1).full && !near(x.stage.value + 1).inputs)
            return void(fail("backward without gradient"));
          if (x.segment + 1 < s_.segments && !segment(x.segment + 1).full && !segment(x.segment + 1).inputs)
            return void(fail("backward without the segment after it"));
      }
    }
    for (std::size_t i = a.at; i < a.end; ++i) {
      const Action& x = row[i];
      State& s = state(a.step, key(x));
      // Two members of one group may be the same action.
      int& count = x.phase == Phase::F   ? s.forward
                   : x.phase == Phase::R ? s.recomputed
                   : x.phase == Phase::B ? s.full
                   : x.phase == Phase::I ? s.inputs
                                         : s.weights;
      if (count++) return void(fail("twice in one group"));
    }
    a.doing = Actor::Doing::send, a.done = 0;
  }

  bool send(std::size_t actor) {
    Actor& a = actors_[actor];
    bool moved = false;
    for (std::size_t i = 0; i < a.out.size(); ++i) {
      if (a.sent.contains(i)) continue;
      const auto& [name, tag] = a.out[i];
      // A later message of the same queue must not slip in front of one that waits for room.
      const bool behind =
          std::any_of(a.out.begin(), a.out.begin() + std::ptrdiff_t(i), [&, &queue_name = name](const auto& o) {
            return o.first == queue_name && !a.sent.contains(std::size_t(&o - a.out.data()));
          });
      if (behind) continue;
      auto& [held, posted] = queues_[name];
      const auto buffer = std::find(posted.begin(), posted.end(), tag);
      if (strict() && !posted.empty() && buffer != posted.begin()) return fail("it goes to another receive");
      if (buffer != posted.end()) {
        posted.erase(buffer);
        actors_[std::size_t(std::get<1>(name))].arrived.insert(tag);
      } else if (int(held.size()) < b_.capacity) {
        held.push_back(tag);
      } else {
        continue;
      }
      a.sent.insert(i);
      moved = true;
    }
    if (a.sent.size() < a.out.size()) return moved;
    a.at = a.end;
    a.doing = Actor::Doing::begin;
    return true;
  }

  std::string complete() {
    for (int step = 0; step < steps; ++step) {
      for (int mb = 0; mb < s_.microbatches; ++mb) {
        const int pipe = s_.pipes() > 1 && mb >= s_.microbatches / 2;
        for (int stage = 0; stage < s_.stages; ++stage) {
          for (int segment = 0; segment < s_.segments; ++segment) {
            const State& s = state(step, Key{pipe, stage, mb, segment});
            if (!s.forward || !(s.full || (s.inputs && s.weights))) return "work left undone";
          }
        }
      }
    }
    return {};
  }

  const Schedule& s_;
  const Blocking& b_;
  std::mt19937& rng_;
  std::vector<Actor> actors_;
  std::map<QueueName, Queue> queues_;
  std::map<std::pair<int, Key>, State> state_;
  std::set<Key> recomputes_;
  std::string why_;
};

}  // namespace

std::string run_blocking(const Schedule& s, const Blocking& b, std::mt19937& rng) { return World(s, b, rng).run(); }

}  // namespace stretto

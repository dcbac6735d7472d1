#include "stretto/simulate/step_time.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "stretto/cost/collective.h"
#include "stretto/fuse/cost.h"
#include "stretto/ir/collective.h"
#include "stretto/program/labels.h"

namespace stretto {
namespace {

class StepPlayer {
 public:
  StepPlayer(const Program& p, const Cluster& c, Timeline* record = nullptr, bool messages = false)
      : p_(p), cluster_(c), actors_(p.actors.size()), record_(record), messages_(messages) {
    arrives_.assign(p.transfers.size(), -1);
  }

  StepTime play() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t a = 0; a < actors_.size(); ++a) moved = advance(int(a)) || moved;
    }
    StepTime t;
    for (std::size_t a = 0; a < actors_.size(); ++a) {
      const Actor& x = actors_[a];
      STRETTO_ASSERT(x.at == p_.actors[a].code.size(), "a program that was proved stops");
      t.seconds = std::max(t.seconds, x.time);
      if (x.sums > t.sums) t.sums = x.sums, t.exposed = x.exposed;
      if (x.gathers > t.gathers) t.gathers = x.gathers, t.gathers_exposed = x.gathers_exposed;
    }
    return t;
  }

 private:
  struct Actor {
    std::size_t at = 0;
    double time = 0, sums = 0, exposed = 0, gathers = 0, gathers_exposed = 0;
    using Lane = std::pair<bool, std::vector<std::string>>;
    std::map<Lane, double> free;           // per group of sums, and of storage
    std::map<std::uint32_t, double> due;   // what was started, by its number
    std::string waited = {};               // for what, right before the next task
    std::optional<std::size_t> span = {};  // the newest of its tasks, in the record
  };

  // Until it has to wait for a message that is not sent yet: did it do anything?
  bool advance(int a) {
    Actor& x = actors_[a];
    const std::vector<Instruction>& code = p_.actors[a].code;
    const std::size_t from = x.at;
    for (; x.at < code.size(); ++x.at) {
      if (const Run* r = std::get_if<Run>(&code[x.at])) {
        const double start = x.time;
        x.time += task_seconds(a, r->task);
        if (record_) add_span(x, a, *r, start);
      } else if (const Send* s = std::get_if<Send>(&code[x.at])) {
        const Route& route = p_.routes[p_.transfers[s->transfer].route];
        const Link l = link(cluster_, p_.rank_of(route.source, 0), p_.rank_of(route.target, 0));
        double& free = links_[{route.source, route.target}];
        free = std::max(free, x.time) + double(route.bytes) / l.bandwidth;
        arrives_[s->transfer] = free + l.latency;
        if (record_ && messages_ && arrives_[s->transfer] > x.time)
          record_->spans.push_back({.actor = a,
                                    .lane = Lane::message,
                                    .start = x.time,
                                    .end = arrives_[s->transfer],
                                    .label = fmt::format("{} to actor {}", route.name, route.target)});
      } else if (const Receive* v = std::get_if<Receive>(&code[x.at])) {
        if (arrives_[v->transfer] < 0) break;
        if (record_ && arrives_[v->transfer] > x.time) {
          const Route& route = p_.routes[p_.transfers[v->transfer].route];
          x.waited = fmt::format("{} from actor {}", route.name, route.source);
        }
        x.time = std::max(x.time, arrives_[v->transfer]);
      } else if (const StartSum* b = std::get_if<StartSum>(&code[x.at])) {
        const double seconds = sum_seconds(a, p_.buckets[b->bucket]);
        double& free = x.free[{false, p_.buckets[b->bucket].axes}];
        const double start = std::max(free, x.time);
        due_[b->bucket] = free = start + seconds;
        if (record_) add_collective(a, code[x.at], start, free);
        x.sums += seconds;
      } else if (const AwaitSum* b = std::get_if<AwaitSum>(&code[x.at])) {
        wait(x, due_[b->bucket], x.exposed);
      } else if (const Start* s = std::get_if<Start>(&code[x.at])) {
        start(x, a, *s);
      } else {
        const Await& w = std::get<Await>(code[x.at]);
        wait(x, x.due[w.number], p_.step->tasks[w.task].part == Part::U ? x.gathers_exposed : x.exposed);
      }
    }
    return x.at > from;
  }

  void wait(Actor& x, double until, double& exposed) const {
    if (until <= x.time) return;
    exposed += until - x.time;
    x.waited = "a collective";
    x.time = until;
  }
  // Tasks of one action in a row are one span.
  void add_span(Actor& x, int actor, const Run& r, double start) {
    Span span{.actor = actor, .start = start, .end = x.time, .waited = std::exchange(x.waited, {})};
    if (r.action == ~0u)
      span.label = label_of(p_, r);
    else
      span.action = p_.schedule.rows[actor][r.action];
    Span* last = x.span ? &record_->spans[*x.span] : nullptr;
    if (last && last->end == start && last->action == span.action && last->label == span.label) {
      last->end = x.time;
    } else {
      x.span = record_->spans.size();
      record_->spans.push_back(std::move(span));
      last = &record_->spans.back();
    }
    if (p_.step->tasks[r.task].part == Part::I && last->action && last->action->phase == Phase::B)
      last->halfway = x.time;
  }
  void add_collective(int actor, const Instruction& i, double start, double end) const {
    if (end <= start) return;
    record_->spans.push_back(
        {.actor = actor, .lane = Lane::collective, .start = start, .end = end, .label = label_of(p_, i)});
  }
  void start(Actor& x, int actor, const Start& s) {
    const Task& t = p_.step->tasks[s.run.task];
    double end = x.time, begin = std::numeric_limits<double>::infinity();
    for (const Node& n : t.body->nodes) {
      if (!n.op->collective) continue;
      const CollectiveShape shape = shape_of(*t.body, n, p_.mesh);
      const double seconds = slowest(shape, actor);
      double& free = x.free[{true, shape.axes}];
      begin = std::min(begin, std::max(free, x.time));
      free = std::max(free, x.time) + seconds;
      end = std::max(end, free);
      (t.part == Part::U ? x.gathers : x.sums) += seconds;
    }
    x.due[s.number] = end;
    if (record_) add_collective(actor, s, begin, end);
  }

  double slowest(const CollectiveShape& s, int actor) const {
    double most = 0;
    for (int k = 0; k < p_.ranks_per_actor(); ++k) {
      std::vector<int> ranks = group_of(p_.mesh, k, s.axes);
      if (ranks[0] != k) continue;
      for (int& r : ranks) r = p_.rank_of(actor, r);
      most = std::max(most, collective_seconds(s, cluster_, ranks));
    }
    return most;
  }
  double sum_seconds(int actor, const GradientBucket& b) const {
    CollectiveShape s{.dtype = b.dtype, .axes = b.axes};
    for (const std::string& axis : b.axes) s.members *= p_.mesh.extent(axis);
    add_box_dim(s, i64(b.bytes / size_of(b.dtype)), 1, 1);
    return slowest(s, actor);
  }
  double task_seconds(int actor, std::uint32_t task) {
    const auto [it, fresh] = known_.try_emplace({task, actor}, 0);
    if (!fresh) return it->second;
    const Task& t = p_.step->tasks[task];
    it->second = seconds_of(*p_.calls[task], cluster_.machine);
    for (const Node& n : t.body->nodes)
      if (n.op->collective) it->second += slowest(shape_of(*t.body, n, p_.mesh), actor);
    return it->second;
  }

  const Program& p_;
  const Cluster& cluster_;
  std::vector<Actor> actors_;
  Timeline* record_ = nullptr;
  bool messages_ = false;
  std::vector<double> arrives_;  // per transfer; -1: not sent
  std::map<std::uint32_t, double> due_;
  std::map<std::pair<int, int>, double> links_;
  std::map<std::pair<std::uint32_t, int>, double> known_;
};

}  // namespace

StepTime step_time(const Program& p, const Cluster& c) { return StepPlayer(p, c).play(); }

PlayedStep play_step(const Program& p, const Cluster& c, bool messages) {
  PlayedStep played;
  Timeline& t = played.timeline;
  t.actors = int(p.actors.size());
  t.stages = p.schedule.stages;
  t.title = fmt::format("{}, predicted", p.schedule.name);
  played.time = StepPlayer(p, c, &t, messages).play();
  std::stable_sort(t.spans.begin(), t.spans.end(), [](const Span& a, const Span& b) {
    return a.actor != b.actor ? a.actor < b.actor : a.start < b.start;
  });
  for (int a = 0; a < t.actors; ++a) t.memory.push_back(live_microbatches(t, p.schedule, a));
  return played;
}

}  // namespace stretto

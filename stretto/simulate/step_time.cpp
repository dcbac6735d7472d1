#include "stretto/simulate/step_time.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "stretto/ir/collective.h"
#include "stretto/program/labels.h"
#include "stretto/program/lanes.h"
#include "stretto/program/next_step.h"
#include "stretto/schedule/in_order.h"
#include "stretto/simulate/prices.h"

namespace stretto {
namespace {

constexpr int most_steps = 8;  // played to find the period

class StepPlayer {
 public:
  StepPlayer(const Program& p, const Cluster& c, Timeline* record = nullptr, bool messages = false)
      : p_(p),
        prices_(p, c),
        f_(prices_.factors()),
        actors_(p.actors.size()),
        record_(record),
        messages_(messages),
        arrives_(p.transfers.size()),
        order_(p.actors.size(), p.transfers.size()) {
    for (ActorId a : p.actors.ids())
      actors_[a].now = p.actors[a].code.begin(), actors_[a].due.resize(p.actors[a].collectives);
  }

  std::optional<double> seconds() { return ends() ? std::optional(result().seconds) : std::nullopt; }

  // Steps follow each other until each takes as long as the one before.
  double period() {
    if (actors_.size() == 1 || f_.free_update || f_.step > 0)  // one by one, or another software
      return play().seconds;
    for (const ActorProgram& a : p_.actors) passed_.push_back(IdVector<InstructionId, double>(a.code.size() + 1));
    double end = play().seconds, last = end;
    const NextStep next = next_step(p_);
    next_ = &next;
    for (int more = 0; more < most_steps; ++more) {
      passed_before_ = passed_;
      for (ActorId a : actors_.ids())
        actors_[a].now = p_.actors[a].code.begin(), actors_[a].at = InstructionId(0), actors_[a].waits = 0;
      arrives_.assign(arrives_.size(), {});
      order_ = {actors_.size(), arrives_.size()};
      const double now = play().seconds, takes = now - std::exchange(end, now);
      if (std::abs(takes - std::exchange(last, takes)) < 1e-9 * takes) break;
    }
    return last;
  }

  StepTime play() {
    const bool done = ends();
    STRETTO_ASSERT(done, "a program that was proved stops");
    return result();
  }

 private:
  struct Actor {
    Code::Iterator now;
    InstructionId at{0};
    std::size_t waits = 0;  // of next_step.h: the next one
    double time = 0, worked = 0, sums = 0, exposed = 0, gathers = 0, gathers_exposed = 0;
    double after = 0;                  // of sums that the stack makes after backward
    std::optional<double> first = {};  // when its first action began
    double issued = 0;                 // until when tasks are issued
    double last = 0, update = 0;       // when its last one ended; what it did after that
    Spent spent = {};
    std::vector<double> free;              // until when wires are busy, by WireId
    IdVector<CollectiveId, double> due;    // of what was started
    std::string waited = {};               // for what, right before the next task
    std::optional<std::size_t> span = {};  // the newest of its tasks, in the record
  };

  // Plays until nobody can go on: is everything done?
  bool ends() {
    order_.run([&](ActorId a) { return advance(a); });
    return order_.finished();
  }
  StepTime result() const {
    StepTime t;
    const Actor* busiest = nullptr;
    double worked = 0;
    for (ActorId a : actors_.ids()) {
      const Actor& x = actors_[a];
      t.seconds = std::max(t.seconds, x.time);
      t.worked = std::max(t.worked, x.worked);
      t.last = std::max(t.last, x.last);
      worked += x.worked;
      if (!busiest || x.spent.busy() > busiest->spent.busy()) busiest = &x;
      if (x.sums > t.sums) t.sums = x.sums, t.exposed = x.exposed;
      if (x.gathers > t.gathers) t.gathers = x.gathers, t.gathers_exposed = x.gathers_exposed;
    }
    if (f_.free_update && splits_backward()) t.seconds = longest_alone();
    t.seconds += f_.step;
    if (t.seconds > 0) t.bubble = std::max(0.0, 1 - worked / (t.seconds * double(actors_.size())));
    t.spent = busiest->spent;
    t.spent.update += f_.step;
    t.spent.sums = busiest->exposed, t.spent.gathers = busiest->gathers_exposed;
    t.spent.bubble = std::max(0.0, t.seconds - t.spent.busy());
    return t;
  }

  bool splits_backward() const {
    for (const Row& row : p_.schedule.rows)
      for (const Action& a : row)
        if (a.phase == Phase::W) return true;
    return false;
  }
  // What one step after the other takes when no actor waits for the others at the end of one.
  double longest_alone() const {
    double longest = 0;
    for (ActorId a : actors_.ids()) {
      const Actor& x = actors_[a];
      longest = std::max(longest, x.last - x.first.value_or(0) + x.update + x.exposed);
    }
    return longest;
  }

  // Until it has to wait for a message that is not sent yet.
  std::optional<TransferId> advance(ActorId a) {
    Actor& x = actors_[a];
    for (; x.now != p_.actors[a].code.end(); ++x.now, ++x.at.value) {
      pass(a);
      if (next_) wait_for_others(x, a);
      const Instruction now = *x.now;
      if (const auto t = received_by(now); t && !arrives_[*t]) return t;
      match(
          now, [&](const Run& r) { run(x, a, r); }, [&](const Send& s) { send(x, a, s.transfer); },
          [&](const Receive& r) { receive(x, r.transfer); }, [&](const Start& s) { start(x, a, s); },
          [&](const Await& w) { await(x, w); });
    }
    pass(a);
    return std::nullopt;
  }
  void pass(ActorId a) {
    if (!passed_.empty()) passed_[a][actors_[a].at] = actors_[a].time;
  }
  // Before it writes into the memory of those that may be in the step before.
  void wait_for_others(Actor& x, ActorId a) const {
    for (const auto& waits = next_->waits[a]; x.waits < waits.size() && waits[x.waits].at == x.at; ++x.waits)
      x.time = std::max(x.time, passed_before_[waits[x.waits].actor][waits[x.waits].until]);
  }

  void run(Actor& x, ActorId a, const Run& r) {
    const double start = x.time;
    if (r.action && !x.first) x.first = start;
    const Priced p = r.calls ? prices_.part(a, r) : prices_.task(a, r.task);
    x.time += p.seconds();
    x.spent.add(p, !r.action);
    issue(x);
    x.worked += x.time - start;
    if (r.action)
      x.last = x.time, x.update = 0;
    else
      x.update += p.seconds();
    if (record_) add_span(x, a, r, start);
  }
  // Kernels run when the program has issued them, which goes on ahead of them until it waits for a message.
  void issue(Actor& x) {
    if (f_.issue == 0) return;
    const Instruction now = *x.now;
    const Run* begun = begun_by(now);
    if (!begun || !begun->action) return;
    x.issued += prices_.issue(p_.task(*begun).part);
    if (x.issued > x.time) x.spent.elements += x.issued - std::exchange(x.time, x.issued);
  }
  // A message that the program waits for is as much for it to do as a task.
  void handle(Actor& x, TransferId t) {
    x.issued = std::max(x.issued, x.time);
    if (f_.issue == 0 || !p_.transfers[t].value()) return;
    const double takes = prices_.issue(Part::F);
    x.issued += takes, x.time = x.issued, x.spent.messages += takes;
  }
  void send(Actor& x, ActorId a, TransferId t) {
    const Route& route = p_.routes[p_.transfers[t].route];
    const Prices::Message m = prices_.message(t);
    double& free = links_[{route.source, route.target}];
    const double start = x.time + until_given(a, x.at);
    free = std::max(free, start) + m.wire;
    const double arrives = free + m.latency;
    arrives_[t] = arrives, order_.happened(t);
    if (m.waits) {
      x.spent.messages += arrives - start;
      x.time += arrives - start;
      handle(x, t);
    }
    if (record_ && messages_ && arrives > start)
      record_->spans.push_back({.actor = a.value,
                                .lane = stretto::Lane::message,
                                .start = start,
                                .end = arrives,
                                .label = fmt::format("{} to actor {}", route.name, route.target.value)});
  }
  // Where B is one thing to the stack, its message waits for all of it.
  double until_given(ActorId a, InstructionId at) {
    if (!f_.joined_backward) return 0;
    const auto& code = p_.actors[a].code;
    std::optional<ActionId> action;
    for (InstructionId i = at; i.value > 0 && !action;) {
      i = InstructionId(i.value - 1);
      const Instruction before = code[i];
      if (const Run* r = run_of(before))
        action = r->action;
      else if (!sent_by(before))
        return 0;
    }
    if (!action || p_.action(a, *action).phase != Phase::B) return 0;
    double rest = 0;
    for (InstructionId i = at; code.has(i); i = InstructionId(i.value + 1)) {
      const Instruction later = code[i];
      if (const Run* r = run_of(later)) {
        if (r->action != action) break;
        rest += (r->calls ? prices_.part(a, *r) : prices_.task(a, r->task)).seconds();
      }
    }
    return rest;
  }
  void receive(Actor& x, TransferId t) {
    if (record_ && *arrives_[t] > x.time) {
      const Route& route = p_.routes[p_.transfers[t].route];
      x.waited = fmt::format("{} from actor {}", route.name, route.source.value);
    }
    if (const double wait = *arrives_[t] - x.time; wait > 0) {
      const Prices::Message m = prices_.message(t);
      if (!m.waits) x.spent.messages += std::min(wait, m.wire + m.latency);
      x.time = *arrives_[t];
    }
    handle(x, t);
  }
  void start(Actor& x, ActorId a, const Start& s) {
    const Task& t = p_.task(s.run);
    issue(x);
    double end = x.time, begin = std::numeric_limits<double>::infinity();
    for (const auto& [seconds, wire] : prices_.started(a, s.run)) {
      if (x.free.size() <= wire.value) x.free.resize(wire.value + 1);
      double& free = x.free[wire.value];
      const double beside = besides(x, t.part, seconds);
      begin = std::min(begin, std::max(free, x.time));
      free = std::max(free, x.time) + beside;
      end = std::max(end, free);
      if (t.part == Part::U) x.gathers += seconds;
      if (t.part == Part::sum || t.part == Part::S) x.sums += seconds;
    }
    x.due[s.collective] = end;
    if (record_ && end > begin)
      record_->spans.push_back({.actor = a.value,
                                .lane = stretto::Lane::collective,
                                .start = begin,
                                .end = end,
                                .label = label_of(p_, s.run.task)});
  }
  // Seconds of a started collective that go on beside tasks: all of them, unless the stack says less. The rest is
  // waited for: sums at the end (await), everything else here.
  double besides(Actor& x, Part part, double seconds) const {
    const bool sum = part == Part::sum || part == Part::S;
    const StackFactors::Hidden& h = f_.hidden;
    const std::optional<double>& hidden = sum ? h.sums : part == Part::U ? h.gathers : h.tensor;
    const double share = hidden.value_or(1), slows = share * h.beside * seconds, waits = (1 - share) * seconds;
    x.time += slows;
    (sum ? x.exposed : part == Part::U ? x.gathers_exposed : x.spent.collectives) += slows;
    if (sum) {
      x.after += waits;
    } else if (hidden) {
      x.time += waits;
      (part == Part::U ? x.gathers_exposed : x.spent.collectives) += waits;
    }
    return hidden ? 0 : seconds;
  }
  void await(Actor& x, const Await& w) const {
    const Part part = p_.step->tasks[w.task].part;
    const bool sum = part == Part::sum || part == Part::S;
    double until = x.due[w.collective];
    if (sum && x.after > 0) until = std::max(until, x.time) + std::exchange(x.after, 0);
    if (until <= x.time) return;
    const double waits = until - x.time;
    (sum ? x.exposed : part == Part::U ? x.gathers_exposed : x.spent.collectives) += waits;
    if (record_) x.waited = "a collective";
    x.time = until;
  }

  // Tasks of one action in a row are one span.
  void add_span(Actor& x, ActorId actor, const Run& r, double start) {
    Span span{.actor = actor.value, .start = start, .end = x.time, .waited = std::exchange(x.waited, {})};
    if (r.action)
      span.action = p_.action(actor, *r.action);
    else
      span.label = label_of(p_, r.task);
    Span* last = x.span ? &record_->spans[*x.span] : nullptr;
    if (last && last->end == start && last->action == span.action && last->label == span.label) {
      last->end = x.time;
    } else {
      x.span = record_->spans.size();
      record_->spans.push_back(std::move(span));
      last = &record_->spans.back();
    }
    if (p_.task(r).part == Part::I && last->action && last->action->phase == Phase::B) last->halfway = x.time;
  }

  const Program& p_;
  Prices prices_;
  const StackFactors& f_;
  IdVector<ActorId, Actor> actors_;
  Timeline* record_ = nullptr;
  bool messages_ = false;
  IdVector<TransferId, std::optional<double>> arrives_;  // once it is sent
  InOrder<TransferId> order_;
  const NextStep* next_ = nullptr;  // in all steps but the first
  // When each is reached; in the step before. Only where steps follow each other.
  IdVector<ActorId, IdVector<InstructionId, double>> passed_, passed_before_;
  std::map<std::pair<ActorId, ActorId>, double> links_;
};

}  // namespace

std::array<std::pair<std::string_view, double>, 9> Spent::parts() const {
  return {{{"products", products},
           {"attention", attention},
           {"elements", elements},
           {"collectives", collectives},
           {"messages", messages},
           {"sums", sums},
           {"gathers", gathers},
           {"update", update},
           {"bubble", bubble}}};
}

std::string_view Spent::limit() const {
  const auto all = parts();
  return std::max_element(all.begin(), all.end(), [](auto& x, auto& y) { return x.second < y.second; })->first;
}

StepTime step_time(const Program& p, const Cluster& c) { return StepPlayer(p, c).play(); }

std::optional<double> step_seconds(const Program& p, const Cluster& c) { return StepPlayer(p, c).seconds(); }

double step_period(const Program& p, const Cluster& c) { return StepPlayer(p, c).period(); }

PlayedStep play_step(const Program& p, const Cluster& c, bool messages) {
  PlayedStep played;
  Timeline& t = played.timeline;
  t.actors = static_cast<int>(p.actors.size());
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

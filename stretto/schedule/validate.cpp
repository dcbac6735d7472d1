#include "stretto/schedule/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "stretto/schedule/index.h"
#include "stretto/schedule/inner/cycles.h"
#include "stretto/schedule/inner/shape.h"

namespace stretto {

namespace {

using Kind = Finding::Kind;

class Checker {
 public:
  Checker(const Schedule& s, const ValidateOptions& o, Validation& v) : s_(s), o_(o), ix_(s), v_(v) {}

  void check() {
    each_action();
    each_key();
    overlap_groups();
    cycles();
    memory();
    accumulation();
  }

 private:
  std::string name(const Action& a) const { return cell(a, s_.stages); }
  std::string name(std::uint32_t i) const { return cell(ix_.actions[i], s_.stages); }
  std::string at(std::uint32_t i) const { return fmt::format("{} (position {})", name(i), ix_.position(i)); }
  ActionPlace place(std::uint32_t i) const { return {ix_.actor[i], ix_.position(i)}; }
  static std::string where(ActionPlace p, std::string_view action) {
    return fmt::format("actor {}, position {}, {}", p.actor.value, p.position, action);
  }

  void wrong(Kind kind, std::uint32_t i, std::string what, std::string hint, std::vector<std::uint32_t> others = {}) {
    Finding f{kind, {where(place(i), name(i)), std::move(what), std::move(hint)}, {place(i)}};
    for (const std::uint32_t o : others) f.culprits.push_back(place(o));
    v_.faults.push_back(std::move(f));
  }

  void each_action() {
    for (std::uint32_t i = 0; i < ix_.size(); ++i) {
      const Action& a = ix_.actions[i];
      if (!ix_.known(a)) {
        unknown(i, a);
        continue;
      }
      if (const PipeId pipe = pipe_of(s_, a.microbatch); pipe != a.pipe) {
        Action there = a;
        there.pipe = pipe;
        wrong(
            Kind::unknown, i,
            fmt::format("microbatch {} goes through the {} pipe", a.microbatch.value, pipe == up_pipe ? "up" : "down"),
            fmt::format("the down pipe takes microbatches below {}: {} would be {}", s_.microbatches / 2, name(i),
                        name(there)));
      }
      const ActorId holder = s_.actor_of[a.pipe][a.stage];
      if (ix_.misplaced(i) && s_.rows.has(holder)) {
        wrong(Kind::place, i,
              fmt::format("actor {} does not hold stage {}, actor {} does", ix_.actor[i].value, a.stage.value,
                          holder.value),
              fmt::format("move it to actor {}'s row", holder.value));
      }
      const std::uint32_t first = *ix_.first(ix_.key(a), a.phase);
      if (first != i) {
        wrong(Kind::twice, i,
              fmt::format("the action stands twice, first on actor {} at position {}", ix_.actor[first].value,
                          ix_.position(first)),
              "delete one of them", {first});
      }
    }
  }

  void unknown(std::uint32_t i, const Action& a) {
    if (a.phase > Phase::R) {
      wrong(Kind::unknown, i, "the action is of no known phase", "use F, B, I, W or R");
    } else if (!s_.actor_of.has(a.pipe) || a.stage.value >= s_.stages) {
      wrong(Kind::unknown, i,
            !s_.actor_of.has(a.pipe)
                ? fmt::format("there is no pipe {}, the schedule has {}", a.pipe.value, s_.pipes())
                : fmt::format("there is no stage {}, the last is {}", a.stage.value, s_.stages - 1),
            "change the stage's number or delete the action");
    } else if (std::cmp_greater_equal(a.microbatch.value, s_.microbatches)) {
      wrong(Kind::unknown, i,
            fmt::format("there is no microbatch {}, the last is {}", a.microbatch.value, s_.microbatches - 1),
            "change the microbatch's number or delete the action");
    } else {
      wrong(Kind::unknown, i,
            fmt::format("there is no sequence segment {}, the last is {}", a.segment, s_.segments - 1),
            "change the segment's number or delete the action");
    }
  }

  // Which of F, B, I, W there are for a (pipe, stage, microbatch, segment), and in what order they stand.
  void each_key() {
    Action a;
    for (const PipeId pipe : s_.actor_of.ids()) {
      for (const StageId stage : s_.actor_of[pipe].ids()) {
        a.pipe = pipe, a.stage = stage, a.microbatch = {}, a.segment = 0;
        std::size_t key = ix_.key(a);
        Run forward{Phase::F}, backward{Phase::B};
        for (const MicrobatchId m : ids_until<MicrobatchId>(s_.microbatches)) {
          for (int segment = 0; segment < s_.segments; ++segment, ++key) {
            a.microbatch = m, a.segment = segment;
            if (pipe_of(s_, m) == pipe) {
              forward.add(*this, a, !ix_.first(key, Phase::F));
              backward.add(*this, a, !o_.forward_only && !has_backward(key));
              halves(key);
            }
            order(key, a);
          }
        }
        forward.end(*this);
        backward.end(*this);
      }
    }
  }

  bool has_backward(std::size_t key) const {
    return ix_.first(key, Phase::B) || ix_.first(key, Phase::I) || ix_.first(key, Phase::W);
  }

  // Neighbouring missing actions of one stage are one fault: "2F3 to 2F7".
  struct Run {
    Phase phase;
    Action first = {}, last = {};
    std::size_t count = 0;

    void add(Checker& c, const Action& a, bool missing) {
      if (!missing) return end(c);
      if (count++ == 0) first = a;
      last = a;
    }
    void end(Checker& c) {
      if (count) c.missing(phase, first, last, count);
      count = 0;
    }
  };

  // The one that stands first.
  ActionNumber first_of(std::size_t key, std::initializer_list<Phase> phases) const {
    ActionNumber found;
    for (const Phase p : phases)
      if (const ActionNumber n = ix_.first(key, p); n && (!found || *n < *found)) found = n;
    return found;
  }

  void missing(Phase phase, Action first, Action last, std::size_t count) {
    first.phase = last.phase = phase;
    const std::size_t key = ix_.key(first);
    const ActionNumber partner =
        phase == Phase::F ? first_of(key, {Phase::R, Phase::I, Phase::B, Phase::W}) : ix_.first(key, Phase::F);
    const std::string what = count == 1 ? name(first) : fmt::format("{} to {}", name(first), name(last));
    const std::string reason = fmt::format("{} {} missing{}", what, count == 1 ? "is" : "are",
                                           phase == Phase::B ? " (and there is no I with a W either)" : "");
    Finding f{Kind::missing, {"", reason, ""}, {}};
    const ActorId holder = s_.actor_of[first.pipe][first.stage];
    if (partner) {
      ActionPlace p = place(*partner);
      f.culprits.push_back(p);
      f.fault.hint =
          fmt::format("add {} {} {}", count == 1 ? "it" : "them", phase == Phase::F ? "before" : "after", at(*partner));
      if (phase == Phase::B) ++p.position;
      f.fault.where = where(p, what);
    } else if (s_.rows.has(holder)) {
      ActionPlace end;
      end.actor = holder, end.position = s_.rows[holder].size();
      f.fault.where = where(end, what);
      f.fault.hint = fmt::format("add {} to actor {}'s row", count == 1 ? "it" : "them", holder.value);
    } else {
      f.fault.where = fmt::format("stage {}, {}", first.stage.value, what);
      f.fault.hint = "add a row for the stage's actor";
    }
    v_.faults.push_back(std::move(f));
  }

  void halves(std::size_t key) {
    const ActionNumber b = ix_.first(key, Phase::B), i = ix_.first(key, Phase::I), w = ix_.first(key, Phase::W);
    if (b && (i || w)) {
      const std::uint32_t other = *(i ? i : w);
      wrong(Kind::split, *b, fmt::format("the full backward stands beside {}", at(other)),
            i && w ? "delete it: I and W are there" : "keep either B, or I and W", {other});
    } else if (i && !w) {
      Action a = ix_.actions[*i];
      a.phase = Phase::W;
      wrong(Kind::split, *i, "the input gradient has no weight gradient",
            fmt::format("add {} after it, or make it B", name(a)));
    } else if (w && !i) {
      Action a = ix_.actions[*w];
      a.phase = Phase::I;
      wrong(Kind::split, *w, "the weight gradient has no input gradient",
            fmt::format("add {} before it, or make it B", name(a)));
    }
  }

  // `later` needs what `earlier` made. Only looks at pairs in one row: other rows are for cycles() and place faults.
  // What stands on the wrong actor has been named already and says nothing about the order there.
  void ordered(ActionNumber before, ActionNumber after, std::string_view reason) {
    if (!before || !after || ix_.actor[*before] != ix_.actor[*after]) return;
    const std::uint32_t earlier = *before, later = *after;
    if (ix_.misplaced(earlier) || ix_.misplaced(later)) return;
    if (ix_.item[earlier] == ix_.item[later]) {
      wrong(Kind::overlap, later,
            fmt::format("members of one overlap group depend on each other: {} {}", reason, name(earlier)),
            "take one of them out of the group", {earlier});
    } else if (earlier > later) {
      wrong(Kind::order, later, fmt::format("{} {}", reason, at(earlier)),
            fmt::format("move it after position {}, or {} before position {}", ix_.position(earlier), name(earlier),
                        ix_.position(later)),
            {earlier});
    }
  }

  void order(std::size_t key, const Action& a) {
    const ActionNumber f = ix_.first(key, Phase::F), b = ix_.first(key, Phase::B), i = ix_.first(key, Phase::I),
                       w = ix_.first(key, Phase::W), r = ix_.first(key, Phase::R);
    ordered(f, b, "the backward needs its forward");
    ordered(f, i, "the backward needs its forward");
    ordered(i ? i : f, w, i ? "the weight gradient needs its input gradient" : "the backward needs its forward");
    if (r) {
      ordered(f, r, "the recompute needs its forward");
      ordered(r, i, "the backward needs its recompute");
      ordered(r, b, "the backward needs its recompute");
    }
    for (const ActionNumber x : {f, b, i}) {
      if (x)
        ordered(ix_.producer(*x), x,
                x == f ? "the forward needs the stage before it," : "the backward needs the stage after it,");
    }
    if (s_.segments > 1 &&
        a.segment > 0) {  // keys and values are kept forward; their gradients come back from later segments
      ordered(ix_.first(key - 1, Phase::F), f, "the forward needs the segment before it,");
      for (const Phase p : {Phase::I, Phase::B}) {
        ordered(ix_.gradient(key), ix_.first(key - 1, p), "the backward needs the segment after it,");
      }
      ordered(ix_.first(key, Phase::W), ix_.first(key - 1, Phase::W),
              "the weight gradient is added to that of the segment after it,");
    }
  }

  void overlap_groups() {
    for (const ActorId r : s_.rows.ids()) {
      std::unordered_set<std::uint32_t> seen;
      for (std::uint32_t i = ix_.begin(r); i < ix_.end(r); ++i) {
        const std::uint32_t group = ix_.actions[i].overlap;
        if (group == 0 || (i > ix_.begin(r) && ix_.item[i] == ix_.item[i - 1])) continue;
        if (!seen.insert(group).second) {
          wrong(Kind::overlap, i, fmt::format("the members of overlap group {} do not stand side by side", group),
                "move them together, or give this one another number");
        }
      }
    }
  }

  void cycles() {
    for (const Cycle& cycle : find_cycles(ix_)) {
      // The cycle comes from a group alone if some hop needs a member that stands before the one the group waits at.
      ActionNumber member;
      std::size_t best = 0;
      const auto slack = [&](std::size_t h) { return i64{cycle[h].needs} - i64{cycle[(h + 1) % cycle.size()].waits}; };
      for (std::size_t h = 0; h < cycle.size(); ++h) {
        const std::uint32_t needs = cycle[h].needs, stuck = cycle[(h + 1) % cycle.size()].waits;
        if (needs < stuck) member = needs;
        if (slack(h) < slack(best)) best = h;
      }
      std::string chain;
      Finding f{member ? Kind::overlap : Kind::cycle, {}, {}};
      for (const CycleHop& hop : cycle) {
        chain += fmt::format("{} waits at {} for a message from actor {} ({}, position {})",
                             chain.empty() ? fmt::format("actor {}", ix_.actor[hop.waits].value) : ", which",
                             at(hop.waits), ix_.actor[hop.needs].value, name(hop.needs), ix_.position(hop.needs));
        f.culprits.push_back(place(hop.waits));
        f.culprits.push_back(place(hop.needs));
      }
      chain += fmt::format(", which waits at {}", name(cycle[0].waits));
      const std::uint32_t stuck = cycle[(best + 1) % cycle.size()].waits;
      f.fault = {where(place(cycle[0].waits), name(cycle[0].waits)),
                 (member ? "members of one overlap group depend on each other: " : "dependency cycle: ") + chain,
                 member ? fmt::format("take {} out of its group", at(*member))
                        : fmt::format("on actor {} move {} before {}", ix_.actor[stuck].value, at(cycle[best].needs),
                                      at(stuck))};
      v_.faults.push_back(std::move(f));
    }
  }

  // F keeps an activation, B or W frees it, I a share of it if that is how the cap is counted; the members of an
  // overlap group are all there at once.
  void memory() {
    const double unit = 1.0 * s_.actors() / s_.stages / s_.segments;
    for (const ActorId r : s_.rows.ids()) {
      double live = 0, peak = 0;
      bool said = false;
      for (std::uint32_t i = ix_.begin(r); i < ix_.end(r);) {
        std::uint32_t end = i;
        double freed = 0;
        for (; end < ix_.end(r) && ix_.item[end] == ix_.item[i]; ++end) {
          const Phase p = ix_.actions[end].phase;
          live += p == Phase::F;
          freed += p == Phase::B ? 1 : p == Phase::I ? o_.freed_by_i : p == Phase::W ? 1 - o_.freed_by_i : 0;
          if (o_.memory > 0 && !said && live * unit > o_.memory * (1 + 1e-9)) {
            said = true;
            wrong(Kind::memory, end,
                  fmt::format("{:g} full-stage activations are live, the cap is {:g}", live * unit, o_.memory),
                  "move a backward before it, raise the cap, or take a schedule with a shorter warm-up");
          }
        }
        peak = std::max(peak, live);
        live -= freed;
        i = end;
      }
      v_.peak.push_back(peak * unit);
    }
  }

  void note(Kind kind, std::string where, std::string what, std::string hint, std::vector<ActionPlace> culprits = {}) {
    v_.notes.push_back({kind, {std::move(where), std::move(what), std::move(hint)}, std::move(culprits)});
  }

  // One note per stage, at its first step back.
  void accumulation() {
    struct Last {
      const Action* action = nullptr;
      bool said = false;
    };
    std::vector<Last> last(s_.pipes() * s_.stages);
    for (std::uint32_t i = 0; i < ix_.size(); ++i) {
      const Action& a = ix_.actions[i];
      if ((a.phase != Phase::B && a.phase != Phase::W) || !ix_.known(a) || ix_.misplaced(i)) continue;
      Last& l = last[ix_.stage_key(a)];
      const Action* b = std::exchange(l.action, &a);
      const bool back =
          b && (a.microbatch < b->microbatch || (a.microbatch == b->microbatch && a.segment > b->segment));
      if (back && !l.said) {
        l.said = true;
        note(Kind::accumulation, where(place(i), name(i)),
             fmt::format("stage {} adds the gradient of microbatch {} after that of {}: results are equal to "
                         "tolerance, not bit-equal",
                         a.stage.value, a.microbatch.value, b->microbatch.value),
             "order the backwards by ascending microbatch for bit-equal results", {place(i)});
      }
    }
    if (s_.pipes() > 1) {
      note(Kind::accumulation, "pipes",
           "a gradient is the sum of two pipes' sums: results are equal to tolerance, not bit-equal", "");
    }
    for (const ActorId r : s_.rows.ids()) {
      if (s_.rows[r].empty()) {
        note(Kind::idle, fmt::format("actor {}", r.value), "the actor has nothing to do",
             "remove its row, or give it a stage");
      }
    }
  }

  const Schedule& s_;
  const ValidateOptions& o_;
  ActionIndex ix_;
  Validation& v_;
};

}  // namespace

std::vector<Fault> Validation::all_faults() const {
  std::vector<Fault> all;
  for (const Finding& f : faults) all.push_back(f.fault);
  return all;
}

std::string Validation::str() const {
  std::string s;
  for (const Finding& f : faults) s += f.fault.str() + "\n";
  for (const Finding& n : notes) s += "note: " + n.fault.str() + "\n";
  return s;
}

Validation validate(const Schedule& s, const ValidateOptions& options) {
  Validation v;
  check_shape(s, options, v);
  if (ActionIndex::fits(s)) {
    Checker(s, options, v).check();
  } else if (v.faults.empty()) {
    v.faults.push_back(
        {Kind::missing,
         fault("schedule", "check the numbers of stages and microbatches for a slip or a gap",
               "{} stages, {} microbatches and {} sequence segments need at least {:.0f} actions, there are {}",
               s.stages, s.microbatches, s.segments, 2.0 * s.stages * s.microbatches * s.segments, s.actions()),
         {}});
  }
  return v;
}

Validated<Schedule> valid(Schedule s, const ValidateOptions& options) {
  refuse(validate(s, options).all_faults());
  return Validated<Schedule>(std::move(s));
}

}  // namespace stretto

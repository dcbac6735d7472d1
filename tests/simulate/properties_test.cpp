// What must hold for every schedule, against a second simulator that knows nothing but the rules.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>

#include "stretto/base/error.h"
#include "stretto/schedule/builders.h"
#include "stretto/simulate/simulate.h"

namespace stretto {
namespace {

struct Case {
  Schedule schedule;
  SimulateOptions options;
};

Case arbitrary() {
  const auto table = schedule_builders();
  const BuilderEntry e = table[*rc::gen::inRange<std::size_t>(0, table.size())];
  int p = *rc::gen::inRange(1, 7), m = *rc::gen::inRange(1, 14);
  if (e.name == "dualpipe" || e.name == "chimera") p += p % 2;
  if (e.name == "dualpipe" || e.name == "dualpipe-v") m += m % 2 + 2 * p;
  if (e.limits.equal_groups) m -= m % std::max(1, m / p);
  const int segments = e.segments ? *rc::gen::inRange(1, 4) : 1;
  Case c{e.build({.actors = p, .microbatches = m, .segments = segments}), {}};
  const auto number = [] { return *rc::gen::inRange(0, 33) / 8.0; };
  for (int s = 0; s < c.schedule.stages; ++s) {
    c.options.stages.push_back({.F = number(), .I = number(), .W = number(), .message_bytes = number()});
    if (*rc::gen::arbitrary<bool>()) c.options.stages.back().B = number();
    for (int k = 0; segments > 1 && k < segments; ++k) c.options.stages.back().shares.push_back(number());
  }
  const double latency = number(), bandwidth = number() + 0.125;
  c.options.link = [=](int from, int to) { return Link{latency + from % 2, bandwidth * (1 + to % 3)}; };
  return c;
}

// Start times by repeated relaxation over all actions until nothing moves: slow, and shares nothing with the engine.
std::map<std::tuple<char, int, int, int, int>, double> ends_by_relaxation(const Case& c) {
  const Schedule& s = c.schedule;
  std::map<std::tuple<char, int, int, int, int>, double> end, left;  // of actions; of what they send
  const auto key = [](const Action& a) {
    const char kind = a.phase == Phase::F ? 'F' : a.phase == Phase::W ? 'W' : 'I';
    return std::tuple(kind, int(a.pipe.value), int(a.stage.value), int(a.microbatch.value), int(a.segment));
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (int actor = 0; actor < s.actors(); ++actor) {
      const Row& row = s.rows[actor];
      double free = 0;
      for (const Action& a : row) {
        const StageCost& cost = c.options.stages[a.stage];
        const bool joined = a.phase == Phase::B;
        const double time = a.phase == Phase::F   ? cost.F
                            : a.phase == Phase::I ? cost.I
                            : a.phase == Phase::W ? cost.W
                                                  : cost.B.value_or(cost.I + cost.W);
        Action from = a;
        if (a.phase == Phase::F && a.stage.value > 0) --from.stage.value;
        if ((joined || a.phase == Phase::I) && a.stage.value + 1 < s.stages) ++from.stage.value;
        double start = free;
        if (from.stage != a.stage) {
          const int source = s.actor_of[a.pipe][from.stage].value;
          double arrives = end[key(from)];
          if (source != actor) {
            const double bytes = c.options.stages[std::min(a.stage, from.stage)].message_bytes / s.segments;
            arrives = left[key(from)] + c.options.link(source, actor).seconds(bytes);
          }
          start = std::max(start, arrives);
        }
        const double share = cost.shares.empty() ? 1.0 / s.segments : cost.shares[a.segment];
        free = start + time * share;
        const double leaves = joined ? start + std::min(time, cost.I) * share : free;
        if (end[key(a)] < free) end[key(a)] = free, moved = true;
        if (left[key(a)] < leaves) left[key(a)] = leaves, moved = true;
      }
    }
  }
  return end;
}

TEST(Property, AgreesWithRelaxation) {
  EXPECT_TRUE(rc::check([] {
    const Case c = arbitrary();
    const Prediction p = simulate(c.schedule, c.options);
    const auto ends = ends_by_relaxation(c);
    for (const Span& span : p.timeline.spans) {
      const Action& a = *span.action;
      const char kind = a.phase == Phase::F ? 'F' : a.phase == Phase::W ? 'W' : 'I';
      const double expected = ends.at({kind, a.pipe.value, a.stage.value, int(a.microbatch.value), a.segment});
      RC_ASSERT(std::abs(span.end - expected) <= 1e-9 * (1 + expected));
    }
  }));
}

TEST(Property, MeasuresFitTogether) {
  EXPECT_TRUE(rc::check([] {
    Case c = arbitrary();
    c.options.epilogue = *rc::gen::inRange(0, 5) / 2.0;
    const Prediction p = simulate(c.schedule, c.options);
    const double near = 1e-9 * (1 + p.makespan);
    RC_ASSERT(p.span <= p.makespan + near);
    RC_ASSERT(p.period <= p.period_barrier + near);
    RC_ASSERT(std::abs(p.timeline.makespan() - p.makespan) <= near);
    RC_ASSERT(std::abs(p.timeline.span() - p.span) <= near);
    RC_ASSERT(std::abs(p.timeline.bubble() - p.bubble) <= 1e-9);
    for (int a = 0; a < c.schedule.actors(); ++a) {
      RC_ASSERT(p.period + near >= p.timeline.busy(a) + c.options.epilogue);
      RC_ASSERT(std::abs(p.timeline.bubble(a) - p.actor_bubble[std::size_t(a)]) <= 1e-9);
      RC_ASSERT(std::abs(p.timeline.peak(a) - p.peak[std::size_t(a)]) <= 1e-9);
      RC_ASSERT(std::abs(p.timeline.memory[std::size_t(a)].back().second) <= 1e-9);
    }
  }));
}

TEST(Property, AnActorDoesOneThingAtATimeAndWaitsOnlyForMessages) {
  EXPECT_TRUE(rc::check([] {
    const Case c = arbitrary();
    const Prediction p = simulate(c.schedule, c.options);
    const Span* before = nullptr;
    for (const Span& span : p.timeline.spans) {
      const bool first = !before || before->actor != span.actor;
      const double free = first ? 0 : before->end;
      RC_ASSERT(span.start >= free);
      RC_ASSERT((span.start > free) == !span.waited.empty());
      before = &span;
    }
  }));
}

TEST(Property, SlowerMessagesAndContentionNeverHelp) {
  EXPECT_TRUE(rc::check([] {
    Case c = arbitrary();
    const double free = simulate(c.schedule, c.options).makespan;
    c.options.contention = true;
    const double queued = simulate(c.schedule, c.options).makespan;
    RC_ASSERT(queued >= free - 1e-9);
    c.options.link = [link = c.options.link](int a, int b) {
      return Link{link(a, b).latency + 1, link(a, b).bandwidth};
    };
    RC_ASSERT(simulate(c.schedule, c.options).makespan >= queued - 1e-9);
  }));
}

TEST(Property, CorruptedRowsAreErrorsNotHangs) {
  EXPECT_TRUE(rc::check([] {
    Case c = arbitrary();
    Schedule& s = c.schedule;
    for (int n = *rc::gen::inRange(1, 4); n > 0; --n) {
      Row& row = s.rows[*rc::gen::inRange<std::size_t>(0, s.rows.size())];
      if (row.empty()) continue;
      const std::size_t i = *rc::gen::inRange<std::size_t>(0, row.size()),
                        k = *rc::gen::inRange<std::size_t>(0, row.size());
      switch (*rc::gen::inRange(0, 5)) {
        case 0:
          std::swap(row[i], row[k]);
          break;
        case 1:
          row.erase(row.begin() + long(i));
          break;
        case 2:
          row.insert(row.begin() + long(k), Action(row[i]));
          break;
        case 3:
          row[i].microbatch = MicrobatchId(*rc::gen::inRange(0, s.microbatches + 2));
          break;
        case 4:
          row[i].stage = StageId(*rc::gen::inRange(0, s.stages + 2));
          break;
      }
    }
    try {
      const Prediction p = simulate(s, c.options);
      RC_ASSERT(p.timeline.spans.size() == s.actions());
    } catch (const Error& e) {
      RC_ASSERT(e.kind() == Error::Kind::input);
    }
  }));
}

}  // namespace
}  // namespace stretto

#include "support/true_fault.h"

#include <algorithm>

namespace stretto {

namespace {

const Action& at(const Schedule& s, ActionPlace p) { return s.rows[p.actor].at(std::size_t(p.position)); }

bool same_work(const Action& a, const Action& b) {
  return a.pipe == b.pipe && a.stage == b.stage && a.microbatch == b.microbatch && a.segment == b.segment;
}

int count(const Schedule& s, const Action& like, Phase phase) {
  int n = 0;
  for (const Row& row : s.rows)
    n += int(
        std::count_if(row.begin(), row.end(), [&](const Action& a) { return a.phase == phase && same_work(a, like); }));
  return n;
}

bool backward(const Action& a) { return a.phase == Phase::I || a.phase == Phase::B; }

// Whether `later` uses what `earlier` makes, with nothing in between.
bool uses(const Action& later, const Action& earlier) {
  if (same_work(later, earlier)) {
    switch (later.phase) {
      case Phase::R:
        return earlier.phase == Phase::F;
      case Phase::W:
        return earlier.phase == Phase::I || earlier.phase == Phase::F;
      case Phase::F:
        return false;
      default:
        return earlier.phase == Phase::F || earlier.phase == Phase::R;
    }
  }
  if (later.pipe != earlier.pipe || later.microbatch != earlier.microbatch) return false;
  const int stages = int(later.stage.value) - int(earlier.stage.value),
            segments = int(later.segment) - int(earlier.segment);
  if (later.phase == Phase::F && earlier.phase == Phase::F)
    return (stages == 1 && segments == 0) || (stages == 0 && segments == 1);
  if (later.phase == Phase::W && earlier.phase == Phase::W) return stages == 0 && segments == -1;  // added to it
  if (backward(later) && backward(earlier)) return (stages == -1 && segments == 0) || (stages == 0 && segments == -1);
  return false;
}

bool one_group(const Schedule& s, ActionPlace a, ActionPlace b) {
  if (a.actor != b.actor || at(s, a).overlap == 0) return false;
  for (int i = std::min(a.position, b.position); i <= std::max(a.position, b.position); ++i) {
    if (at(s, {a.actor, i}).overlap != at(s, a).overlap) return false;
  }
  return true;
}

// Culprits are waits, needs, waits, needs, ...: each use is real, and what is needed stands where the next one waits,
// in its group or after it.
bool circle(const Schedule& s, const std::vector<ActionPlace>& c, bool needs_a_group) {
  bool by_group = false;
  for (std::size_t h = 0; h < c.size(); h += 2) {
    const ActionPlace waits = c[h], needs = c[h + 1], stuck = c[(h + 2) % c.size()];
    if (!uses(at(s, waits), at(s, needs)) || needs.actor != stuck.actor) return false;
    const bool grouped = one_group(s, needs, stuck);
    if (needs.position < stuck.position && !grouped) return false;
    by_group |= needs.position < stuck.position;
  }
  return c.size() >= 4 && by_group == needs_a_group;
}

bool missing(const Schedule& s, const Finding& f) {
  // "2F3 is missing" or "2F3 to 2F7 are missing": every one of them.
  for (int pipe = 0; pipe < s.pipes(); ++pipe) {
    for (int stage = 0; stage < s.stages; ++stage) {
      for (int m = 0; m < s.microbatches; ++m) {
        for (int segment = 0; segment < s.segments; ++segment) {
          Action a{.pipe = PipeId(pipe),
                   .stage = StageId(stage),
                   .microbatch = MicrobatchId(m),
                   .segment = std::uint16_t(segment)};
          for (const Phase p : {Phase::F, Phase::B}) {
            a.phase = p;
            if (!f.fault.what.starts_with(cell(a, s.stages) + " ")) continue;
            if (p == Phase::F) return count(s, a, p) == 0;
            return count(s, a, Phase::B) + count(s, a, Phase::I) + count(s, a, Phase::W) == 0;
          }
        }
      }
    }
  }
  return false;
}

}  // namespace

bool is_true(const Schedule& s, const Finding& f, const ValidateOptions& o) {
  using Kind = Finding::Kind;
  const auto& c = f.culprits;
  switch (f.kind) {
    case Kind::shape:
      return (o.actors > 0 && o.actors != s.actors()) || (o.microbatches > 0 && o.microbatches != s.microbatches);
    case Kind::missing:
      return missing(s, f);
    case Kind::unknown: {
      const Action& a = at(s, c[0]);
      return int(a.stage.value) >= s.stages || int(a.pipe.value) >= s.pipes() ||
             int(a.microbatch.value) >= s.microbatches || int(a.segment) >= s.segments ||
             (s.pipes() > 1 && (int(a.microbatch.value) >= s.microbatches / 2) != (a.pipe == up_pipe));
    }
    case Kind::twice:
      return c[0] != c[1] && at(s, c[0]).phase == at(s, c[1]).phase && same_work(at(s, c[0]), at(s, c[1]));
    case Kind::split: {
      const Action& a = at(s, c[0]);
      const bool b = count(s, a, Phase::B), i = count(s, a, Phase::I), w = count(s, a, Phase::W);
      return b ? i || w : i != w;
    }
    case Kind::place:
      return s.actor_of[at(s, c[0]).pipe][at(s, c[0]).stage] != c[0].actor;
    case Kind::order:
      return c[0].actor == c[1].actor && c[0].position < c[1].position && uses(at(s, c[0]), at(s, c[1])) &&
             !one_group(s, c[0], c[1]);
    case Kind::overlap:
      if (c.size() == 1) {
        for (int i = 0; i < c[0].position; ++i) {
          if (at(s, {c[0].actor, i}).overlap == at(s, c[0]).overlap && !one_group(s, {c[0].actor, i}, c[0]))
            return true;
        }
        return false;
      }
      return c.size() == 2 ? one_group(s, c[0], c[1]) && uses(at(s, c[0]), at(s, c[1])) : circle(s, c, true);
    case Kind::cycle:
      return circle(s, c, false);
    case Kind::memory: {
      int live = 0;
      for (int i = 0; i <= c[0].position; ++i) {
        const Phase p = at(s, {c[0].actor, i}).phase;
        live += p == Phase::F;
        if (!one_group(s, {c[0].actor, i}, c[0])) live -= p == Phase::B || p == Phase::W;
      }
      return live * double(s.actors()) / s.stages / s.segments > o.memory;
    }
    default:
      return false;
  }
}

}  // namespace stretto

#include "stretto/simulate/schedule_tape.h"

#include <algorithm>
#include <cmath>

namespace stretto {

namespace {

enum Seen : std::uint8_t { f = 1, b = 2, i = 4, w = 8, r = 16 };

Seen bit(Phase p) {
  switch (p) {
    case Phase::F:
      return f;
    case Phase::B:
      return b;
    case Phase::I:
      return i;
    case Phase::W:
      return w;
    case Phase::R:
      return r;
  }
  return f;
}

void check_shape(const Schedule& s) {
  const auto wrong = [&](auto&& what) {
    return Error("simulate", "{}", what).hint("`stretto check` lists everything that is wrong with a schedule");
  };
  if (s.rows.empty() || s.stages < 1 || s.microbatches < 1 || s.pieces < 1 || s.actor_of.empty()) {
    throw wrong(fmt::format("nothing to play: {} actors, {} stages, {} microbatches, {} pieces, {} pipes", s.actors(),
                            s.stages, s.microbatches, s.pieces, s.pipes()));
  }
  if (s.pipes() > 2 || s.stages > 0x10000 || s.pieces > 0x10000) {
    throw wrong(fmt::format("{} pipes of {} stages with {} pieces are more than actions can name", s.pipes(), s.stages,
                            s.pieces));
  }
  for (const auto& placement : s.actor_of) {
    if (placement.size() != std::size_t(s.stages)) {
      throw wrong(fmt::format("{} of {} stages have an actor", placement.size(), s.stages));
    }
    for (const int a : placement) {
      if (a < 0 || a >= s.actors()) throw wrong(fmt::format("a stage is placed on actor {} of {}", a, s.actors()));
    }
  }
  // Every microbatch passes every stage: fewer actions than that, and the tables below would be larger than the rows.
  const double least = double(s.stages) * s.microbatches * s.pieces;
  if (least > double(s.actions())) {
    throw wrong(
        fmt::format("{} stages, {} microbatches and {} pieces need at least {:.0f} forwards, and there are {} "
                    "actions in all",
                    s.stages, s.microbatches, s.pieces, least, s.actions()));
  }
}

Error misplaced(const Schedule& s, int actor, std::size_t at, std::string what) {
  return Error("simulate", "actor {} position {}: {} {}", actor, at, cell(s.rows[std::size_t(actor)][at], s.stages),
               std::move(what))
      .hint("`stretto check` lists everything that is wrong with a schedule");
}

// First pass: every action once, where its stage lives, after what it needs in the same row.
std::vector<std::uint8_t> seen_actions(const Schedule& s) {
  std::vector<std::uint8_t> seen(std::size_t(s.pipes()) * std::size_t(s.stages) * std::size_t(s.microbatches) *
                                 std::size_t(s.pieces));
  for (int actor = 0; actor < s.actors(); ++actor) {
    const Row& row = s.rows[std::size_t(actor)];
    for (std::size_t at = 0; at < row.size(); ++at) {
      const Action& a = row[at];
      if (a.pipe >= s.pipes() || a.stage >= s.stages || std::int64_t(a.microbatch) >= s.microbatches ||
          a.piece >= s.pieces) {
        throw misplaced(s, actor, at,
                        fmt::format("is outside {} pipes, {} stages, {} microbatches and {} pieces", s.pipes(),
                                    s.stages, s.microbatches, s.pieces));
      }
      if (const int home = s.actor_of[a.pipe][a.stage]; home != actor) {
        throw misplaced(s, actor, at, fmt::format("belongs to actor {}, which holds its stage", home));
      }
      const std::size_t id = dense_id(s, a);
      std::uint8_t& has = seen[id];
      if (has & bit(a.phase)) throw misplaced(s, actor, at, "stands here a second time");
      if (a.phase != Phase::F && !(has & f)) throw misplaced(s, actor, at, "stands before its forward");
      if (a.phase == Phase::W && !(has & i)) throw misplaced(s, actor, at, "stands before its I");
      if ((a.phase == Phase::B && has & (i | w)) || ((a.phase == Phase::I || a.phase == Phase::W) && has & b)) {
        throw misplaced(s, actor, at, "is already part of a backward of the same stage and microbatch");
      }
      if (a.phase == Phase::R && has & (b | i)) throw misplaced(s, actor, at, "comes after the backward it is for");
      // Pieces of a sequence share keys and values: forwards ascend, backwards descend.
      if (a.phase == Phase::F && a.piece > 0 && !(seen[id - 1] & f)) {
        throw misplaced(s, actor, at, "stands before the forward of the piece before it");
      }
      if ((a.phase == Phase::B || a.phase == Phase::I) && a.piece + 1 < s.pieces && !(seen[id + 1] & (b | i))) {
        throw misplaced(s, actor, at, "stands before the backward of the piece after it");
      }
      has |= bit(a.phase);
    }
  }
  return seen;
}

// The node that makes what `a` needs from another stage; Player::none when it needs nothing.
struct Need {
  bool any = false;
  std::uint32_t node = Player::none;
  Action producer;
};

Need need_of(const Schedule& s, const ScheduleTape& t, const Action& a) {
  Action other = a;
  other.overlap = 0;
  if (a.phase == Phase::F && a.stage > 0) {
    --other.stage;
    return {true, t.node_f[dense_id(s, other)], other};
  }
  if ((a.phase == Phase::B || a.phase == Phase::I) && a.stage + 1 < s.stages) {
    ++other.stage;
    return {true, t.node_b[dense_id(s, other)], other};
  }
  return {};
}

int actor_of_node(const Tape& t, std::uint32_t node) {
  return int(std::upper_bound(t.rows.begin(), t.rows.end(), node) - t.rows.begin()) - 1;
}

bool finite(double x) { return std::isfinite(x) && x >= 0; }

}  // namespace

std::vector<StageCost> stage_costs(const Schedule& s, const SimulateOptions& o) {
  check_shape(s);
  std::vector<StageCost> costs = o.stages;
  if (costs.empty()) {
    const double v = double(s.stages) / s.actors();
    StageCost each{.F = o.times.F / v, .I = o.times.I / v, .W = o.times.W / v};
    if (o.recompute) each.R = *o.recompute / v;
    costs.assign(std::size_t(s.stages), each);
  }
  if (costs.size() != std::size_t(s.stages)) {
    throw Error("simulate", "{} stage costs for {} stages", costs.size(), s.stages).hint("give one per stage, or none");
  }
  for (std::size_t k = 0; k < costs.size(); ++k) {
    const StageCost& c = costs[k];
    for (const double x : {c.F, c.I, c.W, c.B.value_or(0), c.R.value_or(0), c.activation_bytes, c.kept_bytes,
                           c.weight_bytes, c.message_bytes}) {
      if (!finite(x)) {
        throw Error("simulate", "stage {} has a time or size of {}", k, x)
            .hint("times and sizes are finite and not negative");
      }
    }
  }
  if (!(o.freed_by_i >= 0 && o.freed_by_i <= 1)) {
    throw Error("simulate", "an input gradient cannot free {} of an activation", o.freed_by_i)
        .hint("give a share of 0 to 1");
  }
  if (!finite(o.times.message) || !finite(o.overlap) || !finite(o.epilogue)) {
    throw Error("simulate", "message time {}, overlap {}, epilogue {}", o.times.message, o.overlap, o.epilogue)
        .hint("times are finite and not negative");
  }
  return costs;
}

ScheduleTape tape_of(const Schedule& s, const std::vector<StageCost>& costs, const SimulateOptions& o) {
  const std::vector<std::uint8_t> seen = seen_actions(s);
  ScheduleTape t;
  t.has_r.resize(seen.size());
  t.node_f.assign(seen.size(), Player::none);
  t.node_b.assign(seen.size(), Player::none);
  for (std::size_t id = 0; id < seen.size(); ++id) t.has_r[id] = (seen[id] & r) != 0;

  const double share = 1.0 / s.pieces;
  const auto implied = [&](const Action& a) {
    return (a.phase == Phase::B || a.phase == Phase::I) && costs[a.stage].R && !t.has_r[dense_id(s, a)];
  };
  const auto time = [&](const Action& a) {
    const StageCost& c = costs[a.stage];
    switch (a.phase) {
      case Phase::F:
        return c.F * share;
      case Phase::I:
        return c.I * share;
      case Phase::W:
        return c.W * share;
      case Phase::B:
        return c.B.value_or(c.I + c.W) * share;
      case Phase::R:
        return c.R.value_or(c.F) * share;
    }
    return 0.0;
  };

  Tape& tape = t.tape;
  tape.contention = o.contention;
  tape.rows.reserve(s.rows.size() + 1);
  tape.rows.push_back(0);
  const std::size_t actions = s.actions();
  tape.durations.reserve(actions);
  t.items.reserve(actions);
  for (const Row& row : s.rows) {
    for (std::size_t at = 0; at < row.size();) {
      std::size_t end = at + 1;
      if (row[at].overlap && !o.as_run) {
        while (end < row.size() && row[end].overlap == row[at].overlap && end - at < 0xFFFF) ++end;
      }
      if (end == at + 1 && implied(row[at])) {
        tape.durations.push_back(*costs[row[at].stage].R * share);
        t.items.push_back({.position = std::uint32_t(at), .implied = true});
      }
      double sum = 0, longest = 0;
      for (std::size_t k = at; k < end; ++k) {
        double each = time(row[k]);
        if (end > at + 1 && implied(row[k])) each += *costs[row[k].stage].R * share;
        sum += each;
        longest = std::max(longest, each);
        const std::size_t id = dense_id(s, row[k]);
        if (row[k].phase != Phase::F && t.node_f[id] == tape.nodes()) {
          throw misplaced(s, int(&row - s.rows.data()), k, "is overlapped with the forward it needs");
        }
        if (row[k].phase == Phase::W && t.node_b[id] == tape.nodes()) {
          throw misplaced(s, int(&row - s.rows.data()), k, "is overlapped with the I it needs");
        }
        if (row[k].phase == Phase::F) t.node_f[id] = tape.nodes();
        if (row[k].phase == Phase::B || row[k].phase == Phase::I) t.node_b[id] = tape.nodes();
      }
      tape.durations.push_back(end == at + 1 ? sum : std::max(longest, o.overlap * sum));
      t.items.push_back({.position = std::uint32_t(at), .count = std::uint16_t(end - at)});
      at = end;
    }
    tape.rows.push_back(tape.nodes());
  }

  // A link per (source, target) that is used; stages have one neighbour each way, so this stays small.
  const std::size_t actors = s.rows.size();
  std::vector<std::vector<std::pair<int, std::pair<std::uint32_t, Link>>>> links(actors);
  const auto link_of = [&](int from, int to) -> const std::pair<std::uint32_t, Link>& {
    auto& known = links[std::size_t(from)];
    for (const auto& [target, l] : known) {
      if (target == to) return l;
    }
    const Link made = o.link ? o.link(from, to) : Link{.latency = o.times.message};
    if (!finite(made.latency) || !(made.bandwidth > 0)) {
      throw Error("simulate", "the link from actor {} to actor {} has latency {} and bandwidth {}", from, to,
                  made.latency, made.bandwidth)
          .hint("latencies are not negative, bandwidths above 0");
    }
    known.push_back({to, {tape.links++, made}});
    return known.back().second;
  };

  tape.first_edge.reserve(tape.durations.size() + 1);
  tape.first_edge.push_back(0);
  tape.edges.reserve(actions);
  std::uint32_t node = 0;
  for (int actor = 0; actor < s.actors(); ++actor) {
    const Row& row = s.rows[std::size_t(actor)];
    for (; node < tape.rows[std::size_t(actor) + 1]; ++node) {
      const TapeItem& item = t.items[node];
      for (std::uint32_t k = item.position; !item.implied && k < item.position + item.count; ++k) {
        const Action& a = row[k];
        Action next = a;
        if (a.phase == Phase::F) {
          ++next.stage;
        } else if ((a.phase == Phase::B || a.phase == Phase::I) && a.stage > 0) {
          --next.stage;
        } else {
          continue;
        }
        if (next.stage >= s.stages) continue;
        const std::uint32_t to = (a.phase == Phase::F ? t.node_f : t.node_b)[dense_id(s, next)];
        if (to == Player::none) continue;  // forward-only rows have no backward to feed
        const int target = s.actor_of[next.pipe][next.stage];
        Edge edge{.to = to};
        if (o.as_run && a.phase == Phase::B) edge.early = std::max(0.0, time(a) - costs[a.stage].I * share);
        if (target != actor) {
          const auto& [link, l] = link_of(actor, target);
          const double bytes = costs[std::min(a.stage, next.stage)].message_bytes * share;
          edge.link = link, edge.delay = l.seconds(bytes);
        } else if (to > node) {
          continue;  // the row's order is enough
        }
        tape.edges.push_back(edge);
      }
      tape.first_edge.push_back(std::uint32_t(tape.edges.size()));
    }
  }

  // A need whose producer stands nowhere would never be counted as missing.
  for (int actor = 0; actor < s.actors(); ++actor) {
    const Row& row = s.rows[std::size_t(actor)];
    for (std::size_t at = 0; at < row.size(); ++at) {
      const Need n = need_of(s, t, row[at]);
      if (n.any && n.node == Player::none) {
        throw misplaced(s, actor, at, fmt::format("needs {}, which stands in no row", cell(n.producer, s.stages)));
      }
    }
  }
  return t;
}

Error never_ends(const Schedule& s, const ScheduleTape& t, const std::vector<std::uint32_t>& stuck) {
  struct Link {
    int actor;
    std::string text;
  };
  std::vector<Link> chain;
  std::vector<int> visited(stuck.size(), -1);
  int actor = int(std::find_if(stuck.begin(), stuck.end(), [](auto n) { return n != Player::none; }) - stuck.begin());
  std::size_t cycle = 0;
  while (true) {
    if (visited[std::size_t(actor)] >= 0) {
      cycle = std::size_t(visited[std::size_t(actor)]);
      break;
    }
    visited[std::size_t(actor)] = int(chain.size());
    const std::uint32_t node = stuck[std::size_t(actor)];
    const TapeItem& item = t.items[node];
    int next = -1;
    for (std::uint32_t k = item.position; k < item.position + item.count && next < 0; ++k) {
      const Action& a = s.rows[std::size_t(actor)][k];
      const Need n = need_of(s, t, a);
      if (!n.any || n.node == Player::none) continue;
      const int from = actor_of_node(t.tape, n.node);
      if (stuck[std::size_t(from)] == Player::none || n.node < stuck[std::size_t(from)]) continue;  // already played
      chain.push_back({actor, fmt::format("actor {} waits at {} for {} of actor {}", actor, cell(a, s.stages),
                                          cell(n.producer, s.stages), from)});
      next = from;
    }
    STRETTO_ASSERT(next >= 0, "a stuck node lacks a message");
    actor = next;
  }
  std::string text;
  for (std::size_t k = cycle; k < chain.size(); ++k) {
    text += k == cycle ? chain[k].text : ", which" + chain[k].text.substr(chain[k].text.find(" waits"));
  }
  return Error("simulate", "the schedule cannot run: {}", text)
      .hint("move one of these actions before the one its actor waits at; `stretto check` lists all faults");
}

}  // namespace stretto

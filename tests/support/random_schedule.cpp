#include "support/random_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace stretto {

namespace {

int below(std::mt19937& rng, std::size_t n) { return int(rng() % std::uint32_t(n)); }
bool chance(std::mt19937& rng, double p) { return double(rng()) / 4294967296.0 < p; }

Schedule placed(const RandomSchedule& r, std::mt19937& rng) {
  const Request q{.actors = r.actors, .microbatches = r.microbatches, .chunks = r.chunks, .segments = r.segments};
  switch (r.placement) {
    case RandomSchedule::Placement::v_shaped:
      return v_shaped({.actors = q.actors, .microbatches = q.microbatches, .segments = q.segments});
    case RandomSchedule::Placement::bidirectional:
      return bidirectional({.actors = q.actors, .microbatches = q.microbatches, .segments = q.segments});
    default:
      break;
  }
  Schedule s = looped(q);
  if (r.placement == RandomSchedule::Placement::any)
    std::shuffle(s.actor_of[down_pipe].begin(), s.actor_of[down_pipe].end(), rng);
  return s;
}

}  // namespace

Schedule random_schedule(const RandomSchedule& r) {
  std::mt19937 rng(r.seed);
  Schedule s = placed(r, rng);
  const int S = s.stages, m = s.microbatches, q = s.segments;
  auto key = [&](int pipe, int stage, int mb, int segment) { return ((pipe * S + stage) * m + mb) * q + segment; };
  const std::size_t keys = std::size_t(s.pipes() * S * m * q);
  std::vector<char> forward(keys), gradient(keys), weight(keys), split(keys), recompute(keys), recomputed(keys);
  std::vector<Action> open;  // not yet placed
  for (int pipe = 0; pipe < s.pipes(); ++pipe) {
    for (int mb = 0; mb < m; ++mb) {
      if (s.pipes() > 1 && (mb >= m / 2) != (pipe == 1)) continue;
      for (int stage = 0; stage < S; ++stage) {
        for (int segment = 0; segment < q; ++segment) {
          Action a{.pipe = PipeId(pipe),
                   .stage = StageId(stage),
                   .microbatch = MicrobatchId(mb),
                   .segment = std::uint16_t(segment)};
          const auto k = std::size_t(key(pipe, stage, mb, segment));
          auto add = [&](Phase p) { a.phase = p, open.push_back(a); };
          split[k] = chance(rng, r.halves);
          recompute[k] = chance(rng, r.recompute);
          add(Phase::F);
          if (recompute[k]) add(Phase::R);
          if (split[k]) add(Phase::I), add(Phase::W);
          if (!split[k]) add(Phase::B);
        }
      }
    }
  }
  auto ready = [&](const Action& a) {
    const auto k = std::size_t(key(a.pipe.value, a.stage.value, int(a.microbatch.value), a.segment)),
               stride = std::size_t(m * q);
    switch (a.phase) {
      case Phase::F:
        return (a.stage == StageId(0) || forward[k - stride]) && (a.segment == 0 || forward[k - 1]);
      case Phase::R:
        return forward[k] != 0;
      case Phase::W:
        return gradient[k] && (a.segment + 1 == q || weight[k + 1]);
      default:
        return forward[k] && (!recompute[k] || recomputed[k]) && (a.stage.value + 1 == S || gradient[k + stride]) &&
               (a.segment + 1 == q || gradient[k + 1]);
    }
  };
  while (!open.empty()) {
    std::vector<std::size_t> can;
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (ready(open[i])) can.push_back(i);
    }
    std::size_t choice = can[std::size_t(below(rng, can.size()))];
    if (chance(rng, r.ordered)) {
      const bool first = chance(rng, r.forward);
      auto rank = [&](std::size_t i) { return std::pair((open[i].phase == Phase::F) != first, open[i].microbatch); };
      choice = *std::min_element(can.begin(), can.end(), [&](auto x, auto y) { return rank(x) < rank(y); });
    }
    const Action a = open[choice];
    open.erase(open.begin() + std::ptrdiff_t(choice));
    const auto k = std::size_t(key(a.pipe.value, a.stage.value, int(a.microbatch.value), a.segment));
    if (a.phase == Phase::F) forward[k] = 1;
    if (a.phase == Phase::R) recomputed[k] = 1;
    if (a.phase == Phase::I || a.phase == Phase::B) gradient[k] = 1;
    if (a.phase == Phase::W || a.phase == Phase::B) weight[k] = 1;
    s.rows[s.actor_of[a.pipe][a.stage]].push_back(a);
  }
  for (Row& row : s.rows) {
    std::uint32_t group = 0;
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      if (chance(rng, r.groups)) row[i].overlap = row[i + 1].overlap = ++group, ++i;
    }
  }
  return s;
}

std::string spoil(Schedule& s, std::mt19937& rng) {
  auto any_row = [&]() -> Row& {
    while (true) {
      Row& row = s.rows[std::size_t(below(rng, s.rows.size()))];
      if (!row.empty()) return row;
    }
  };
  auto at = [](Row& row, int i) { return row.begin() + i; };
  Row& row = any_row();
  const int i = below(rng, row.size());
  const std::string name = cell(row[std::size_t(i)], s.stages);
  switch (below(rng, 6)) {
    case 0: {  // anywhere
      Row& other = any_row();
      const int j = below(rng, other.size());
      std::swap(row[std::size_t(i)], other[std::size_t(j)]);
      return fmt::format("{} swapped with {}", name, cell(row[std::size_t(i)], s.stages));
    }
    case 1: {  // near by: more often still valid
      const int j = std::min(int(row.size()) - 1, i + 1 + below(rng, 3));
      std::swap(row[std::size_t(i)], row[std::size_t(j)]);
      return fmt::format("{} swapped with {}", name, cell(row[std::size_t(i)], s.stages));
    }
    case 2:
      row.erase(at(row, i));
      return name + " deleted";
    case 3: {
      const Action copy = row[std::size_t(i)];
      row.insert(at(row, below(rng, row.size() + 1)), copy);
      return name + " duplicated";
    }
    case 4: {
      const Action moved = row[std::size_t(i)];
      row.erase(at(row, i));
      const std::size_t to = std::size_t(below(rng, s.rows.size()));
      s.rows[to].insert(at(s.rows[to], below(rng, s.rows[to].size() + 1)), moved);
      return fmt::format("{} moved to row {}", name, to);
    }
    default:
      row[std::size_t(i)].microbatch = MicrobatchId(below(rng, std::size_t(s.microbatches) + 1));
      return fmt::format("{} made {}", name, cell(row[std::size_t(i)], s.stages));
  }
}

}  // namespace stretto

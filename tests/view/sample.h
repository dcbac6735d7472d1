// Timelines made by hand for the tests of the pictures: rows of actions played in order, with free messages.
#pragma once
#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "stretto/schedule/timeline.h"

namespace stretto::sample {

inline double cost(Phase p) { return p == Phase::B ? 2 : 1; }

// One stage per actor per chunk, looped; an action starts when its actor is free and its input is there.
inline Timeline play(const std::vector<Row>& rows, int stages, std::string title) {
  Timeline t{.actors = int(rows.size()), .stages = stages, .title = std::move(title)};
  const double unit = double(rows.size()) / stages;
  std::map<std::tuple<bool, int, int>, double> done;  // backward?, stage, microbatch
  std::vector<std::size_t> next(rows.size());
  std::vector<double> free_at(rows.size());
  std::vector<double> live(rows.size());
  t.memory.resize(rows.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t a = 0; a < rows.size(); ++a) {
      while (next[a] < rows[a].size()) {
        const Action& x = rows[a][next[a]];
        const bool back = x.phase != Phase::F;
        const int source = back ? x.stage.value + 1 : x.stage.value - 1;
        double ready = 0;
        std::string waited;
        if (x.phase != Phase::W && source >= 0 && source < stages) {
          const auto at = done.find({back, source, int(x.microbatch.value)});
          if (at == done.end()) break;
          ready = at->second;
          if (ready > free_at[a])
            waited = "message " + std::to_string(source) + letter(x.phase) + std::to_string(x.microbatch.value) +
                     " from actor " + std::to_string(source % int(rows.size()));
        }
        const double start = std::max(ready, free_at[a]), end = start + cost(x.phase) * unit;
        t.spans.push_back({.actor = int(a), .start = start, .end = end, .action = x, .waited = waited});
        if (x.phase != Phase::W) done[{back, x.stage.value, int(x.microbatch.value)}] = end;
        if (x.phase == Phase::F) t.memory[a].emplace_back(start, live[a] += unit);
        if (x.phase == Phase::B || x.phase == Phase::W) t.memory[a].emplace_back(end, live[a] -= unit);
        free_at[a] = end;
        ++next[a];
        moved = true;
      }
    }
  }
  return t;
}

// Every actor as so many ranks, of which the last waits least within its tasks.
inline Timeline with_ranks(const Timeline& one, int ranks) {
  Timeline t = one;
  t.ranks = ranks;
  t.spans.clear();
  for (const Span& s : one.spans)
    for (int c = 0; c < ranks; ++c) {
      t.spans.push_back(s);
      t.spans.back().coordinate = c;
      if (s.lane == Lane::compute) t.spans.back().waiting = (s.end - s.start) * (ranks - 1 - c) / (2.0 * ranks);
    }
  return t;
}

inline Timeline one_f_one_b(int p, int m) {
  std::vector<Row> rows(p);
  for (int a = 0; a < p; ++a) {
    int f = 0, b = 0;
    const int warm = std::min(p - a - 1, m);
    while (f < warm) rows[a].F(a, f++);
    while (f < m) rows[a].F(a, f++).B(a, b++);
    while (b < m) rows[a].B(a, b++);
  }
  return play(rows, p, "1f1b");
}

inline Timeline zb_h1(int p, int m) {
  std::vector<Row> rows(p);
  for (int a = 0; a < p; ++a) {
    int f = 0, i = 0, w = 0;
    while (f < std::min(p - a, m)) rows[a].F(a, f++);
    for (int k = 0; k < a && f < m; ++k) rows[a].I(a, i++).F(a, f++);
    while (w < m) {
      if (i < m) rows[a].I(a, i++);
      if (w < m) rows[a].W(a, w++);
      if (f < m) rows[a].F(a, f++);
    }
  }
  return play(rows, p, "zb-h1");
}

inline Timeline looped_bfs(int p, int m, int v) {
  std::vector<Row> rows(p);
  for (int a = 0; a < p; ++a) {
    for (int c = 0; c < v; ++c)
      for (int k = 0; k < m; ++k) rows[a].F(c * p + a, k);
    for (int c = v; c-- > 0;)
      for (int k = 0; k < m; ++k) rows[a].B(c * p + a, k);
  }
  return play(rows, p * v, "looped-bfs");
}

// As a run would measure it: seconds, uneven, with messages, collectives, an update and bytes.
inline Timeline measured(int p, int m) {
  Timeline t = zb_h1(p, m);
  t.title = "measured";
  t.memory_unit = "bytes";
  std::vector<double> last(p);
  std::vector<Span> extra;
  for (std::size_t i = 0; i < t.spans.size(); ++i) {
    Span& s = t.spans[i];
    s.start = 100 + s.start * 0.0021;
    s.end = 100 + s.end * 0.0021 - 0.0001 * double(i % 4);
    last[s.actor] = std::max(last[s.actor], s.end);
    if (s.action->phase == Phase::F && s.actor + 1 < p)
      extra.push_back({.actor = s.actor,
                       .lane = Lane::message,
                       .start = s.end,
                       .end = s.end + 0.0009,
                       .action = s.action,
                       .label = "send x"});
  }
  for (int a = 0; a < p; ++a) {
    extra.push_back(
        {.actor = a, .lane = Lane::collective, .start = last[a], .end = last[a] + 0.003, .label = "reduce gradients"});
    extra.push_back(
        {.actor = a, .lane = Lane::other, .start = last[a] + 0.003, .end = last[a] + 0.0045, .label = "update"});
    for (auto& [time, amount] : t.memory[a]) time = 100 + time * 0.0021, amount *= 48e6;
  }
  t.spans.insert(t.spans.end(), extra.begin(), extra.end());
  return t;
}

}  // namespace stretto::sample

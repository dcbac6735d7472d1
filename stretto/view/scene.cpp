#include "stretto/view/scene.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "stretto/base/text.h"

namespace stretto {
namespace {

bool drawable(const Span& s, const Timeline& t) {
  return std::isfinite(s.start) && std::isfinite(s.end) && s.end >= s.start && t.has(s);
}

// Groups of bars that touch in time share the height equally. `tolerance` forgives the last bits of added-up times.
void assign_slots(Track& track, double tolerance) {
  std::stable_sort(track.bars.begin(), track.bars.end(), [](const Bar& a, const Bar& b) { return a.start < b.start; });
  std::vector<double> free_at;  // per slot of the present group
  std::size_t first = 0;
  double reach = -std::numeric_limits<double>::infinity();
  const auto close = [&](std::size_t end) {
    for (std::size_t i = first; i < end; ++i) track.bars[i].slots = std::max<int>(1, free_at.size());
    track.slots = std::max<int>(track.slots, free_at.size());
    first = end;
    free_at.clear();
  };
  for (std::size_t i = 0; i < track.bars.size(); ++i) {
    Bar& b = track.bars[i];
    if (b.start >= reach - tolerance) close(i);
    std::size_t slot = 0;
    while (slot < free_at.size() && free_at[slot] > b.start + tolerance) ++slot;
    if (slot == free_at.size()) free_at.push_back(0);
    free_at[slot] = b.end;
    b.slot = slot;
    reach = std::max(reach, b.end);
  }
  close(track.bars.size());
}

// Time is counted once, as in Timeline::busy_ranks.
double busy(const Track& track) {
  double sum = 0, until = -std::numeric_limits<double>::infinity();
  for (const Bar& b : track.bars) {
    sum += std::max(0.0, b.end - std::max(b.start, until) - b.span->waiting);
    until = std::max(until, b.end);
  }
  return sum;
}

// Of every rank its tracks, those that have bars and that of its tasks.
void add_tracks(Scene& s, std::vector<Track> all) {
  for (Track& track : all) {
    if (track.bars.empty() && track.lane != Lane::compute) continue;
    assign_slots(track, 1e-9 * s.length);
    if (track.lane == Lane::compute) {
      s.bubbles.push_back(s.length > 0 ? 1 - busy(track) / s.length : 0);
      if (track.coordinate == 0) s.longest.push_back(0);
      const auto mine = s.bubbles.end() - 1 - track.coordinate;
      if (s.bubbles.back() < mine[s.longest.back()]) s.longest.back() = track.coordinate;
    }
    s.tracks.push_back(std::move(track));
  }
}

}  // namespace

Scene scene(const Timeline& t) {
  Scene s;
  s.timeline = &t;
  double first = std::numeric_limits<double>::infinity(), last = -first, shortest = first;
  const int actors = std::max(t.actors, 0);
  std::vector<double> lengths;                                     // of the actions
  std::vector<std::set<std::pair<PipeId, StageId>>> held(actors);  // (pipe, stage) per actor: a chunk is its rank there
  for (const Span& span : t.spans) {
    if (!drawable(span, t)) continue;
    first = std::min(first, span.start);
    last = std::max(last, span.end);
    if (span.lane == Lane::compute && span.action && span.end > span.start) {
      shortest = std::min(shortest, span.end - span.start);
      lengths.push_back(span.end - span.start);
    }
    if (span.action) held[span.actor].emplace(span.action->pipe, span.action->stage);
  }
  if (last >= first) s.origin = first, s.length = last - first;
  if (!lengths.empty()) {
    // A measured action may fall apart into spans of any length: those must not decide how wide a picture is.
    const auto middle = lengths.begin() + lengths.size() / 2;
    std::nth_element(lengths.begin(), middle, lengths.end());
    s.shortest = std::max(shortest, *middle / 16);
  }

  std::vector<std::map<std::pair<PipeId, StageId>, int>> chunk(actors);
  for (int a = 0; a < actors; ++a) {
    for (const auto& stage : held[a]) chunk[a].emplace(stage, chunk[a].size());
    s.chunks = std::max<int>(s.chunks, held[a].size());
  }

  std::vector<Track> all(std::size_t(actors) * t.ranks * 4);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const int rank = i / 4;
    all[i].actor = rank / t.ranks, all[i].coordinate = rank % t.ranks, all[i].lane = Lane(i % 4);
  }
  for (const Span& span : t.spans) {
    if (!drawable(span, t)) continue;
    Bar b{&span, span.start - s.origin, span.end - s.origin};
    if (span.action) b.chunk = chunk[span.actor].at({span.action->pipe, span.action->stage});
    all[t.row(span) * 4 + std::size_t(span.lane)].bars.push_back(b);
  }
  add_tracks(s, std::move(all));
  return s;
}

bool folds(const Timeline& t) { return t.ranks > 1 && t.actors * t.ranks > most_rows; }

bool stands_for_actor(const Scene& s, const Track& t) { return s.longest[t.actor] == t.coordinate; }

std::string row_name(const Timeline& t, const Track& track) {
  if (t.ranks == 1) return fmt::format("actor {}", track.actor);
  const std::string rank = fmt::format("rank {}", track.actor * t.ranks + track.coordinate);
  return t.actors == 1 ? rank : fmt::format("actor {} {}", track.actor, rank);
}

std::string folded_text(const Timeline& t) {
  return folds(t) ? fmt::format(", of {} ranks per actor the busiest is drawn", t.ranks) : "";
}

std::string time_text(double t, Clock clock) {
  if (clock == Clock::units) return fmt::format("{:.6g}", t);
  const double a = std::abs(t);
  if (a == 0) return "0 s";
  if (a < 1e-3) return fmt::format("{:.4g} us", t * 1e6);
  if (a < 1) return fmt::format("{:.4g} ms", t * 1e3);
  return fmt::format("{:.4g} s", t);
}

std::string memory_text(double amount, const std::string& unit) {
  return unit == "bytes" ? human_bytes(amount) : fmt::format("{:.4g} {}", amount, unit);
}

std::string caption(const Span& s) {
  if (!s.action) return s.label;
  return s.action->segment ? fmt::format("{}.{}", s.action->microbatch.value, s.action->segment)
                           : fmt::format("{}", s.action->microbatch.value);
}

std::string describe(const Span& s, int stages) {
  if (!s.action) return s.label.empty() ? std::string(name_of(s.lane)) : s.label;
  const Action& a = *s.action;
  std::string text = fmt::format("{}: {} of stage {}, microbatch {}", cell(a, stages), name_of(a.phase), a.stage.value,
                                 a.microbatch.value);
  if (a.segment) text += fmt::format(", segment {}", a.segment);
  if (a.pipe == up_pipe) text += ", up pipe";
  if (s.lane != Lane::compute) text = fmt::format("{} ({})", s.label.empty() ? name_of(s.lane) : s.label, text);
  return text;
}

std::string_view name_of(Phase p) {
  switch (p) {
    case Phase::F:
      return "forward";
    case Phase::B:
      return "backward";
    case Phase::I:
      return "input gradient";
    case Phase::W:
      return "weight gradient";
    case Phase::R:
      return "recompute";
  }
  return "";
}

std::string_view name_of(Lane l) {
  switch (l) {
    case Lane::compute:
      return "compute";
    case Lane::message:
      return "messages";
    case Lane::collective:
      return "collectives";
    case Lane::other:
      return "other work";
  }
  return "";
}

double waiting_share(const Span& s) {
  const double length = s.end - s.start;
  return length > 0 ? std::clamp(s.waiting / length, 0.0, 1.0) : 0;
}

double peak_memory(const Timeline& t) {
  double most = 0;
  for (int a = 0; a < std::min<int>(t.actors, t.memory.size()); ++a) most = std::max(most, t.peak(a));
  return most;
}

std::string summary(const Timeline& t, Clock clock) {
  std::string text = fmt::format("makespan {}, bubble {:.1f}%", time_text(t.makespan(), clock), 100 * t.bubble());
  if (!t.memory.empty()) text += ", peak " + memory_text(peak_memory(t), t.memory_unit);
  return text;
}

double tick_step(double length, int most) {
  if (!(length > 0) || !std::isfinite(length) || most < 1) return 1;
  const double least = length / most, power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1, 2, 5})
    if (factor * power >= least * (1 - 1e-12)) return factor * power;
  return 10 * power;
}

std::vector<Phase> phases_of(std::span<const Timeline> timelines) {
  std::set<Phase> seen;
  for (const Timeline& t : timelines)
    for (const Span& s : t.spans)
      if (s.action && s.lane == Lane::compute) seen.insert(s.action->phase);
  return {seen.begin(), seen.end()};
}

std::vector<Lane> lanes_of(std::span<const Timeline> timelines) {
  std::set<Lane> seen;
  for (const Timeline& t : timelines)
    for (const Span& s : t.spans)
      if (s.lane != Lane::compute || !s.action) seen.insert(s.lane == Lane::compute ? Lane::other : s.lane);
  return {seen.begin(), seen.end()};
}

std::string chunk_name(std::span<const Timeline> timelines, int chunk) {
  const bool bidirectional = std::all_of(timelines.begin(), timelines.end(), [](const Timeline& t) {
    return std::any_of(t.spans.begin(), t.spans.end(),
                       [](const Span& s) { return s.action && s.action->pipe == up_pipe; });
  });
  if (bidirectional && chunk < 2) return chunk == 0 ? "down pipe" : "up pipe";
  return fmt::format("chunk {}", chunk);
}

}  // namespace stretto

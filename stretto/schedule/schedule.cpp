#include "stretto/schedule/schedule.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/hash.h"

namespace stretto {

namespace {

// What a row of 16-byte actions may cost before it is a mistake rather than a request: half a gigabyte.
constexpr long long most_actions = 1ll << 25;
constexpr int most_stages = 1 << 15;

Schedule empty(Request r, int chunks, int pipes) {
  r.chunks = chunks;
  check_sizes(r);
  Schedule s;
  s.stages = r.actors * chunks;
  s.microbatches = r.microbatches;
  s.segments = r.segments;
  s.actor_of.assign(pipes, IdVector<StageId, ActorId>(s.stages));
  s.rows.resize(r.actors);
  return s;
}

// Overlap numbers only say who belongs together: 0 alone, 1 opens a group, 2 continues it.
std::uint32_t grouping(const Row& row, std::size_t i) {
  if (row[i].overlap == 0) return 0;
  return i > 0 && row[i - 1].overlap == row[i].overlap ? 2 : 1;
}

bool equal(const Row& a, const Row& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    Action x = a[i], y = b[i];
    x.overlap = y.overlap = 0;
    if (x != y || grouping(a, i) != grouping(b, i)) return false;
  }
  return true;
}

}  // namespace

char letter(Phase phase) { return phase > Phase::R ? '?' : "FBIWR"[static_cast<int>(phase)]; }

Row& Row::add(Phase phase, int stage, int microbatch, int pipe, int segment) {
  if (stage < 0 || stage > 0xFFFF || microbatch < 0 || pipe < 0 || pipe > 1 || segment < 0 || segment > 0xFFFF) {
    throw Error("schedule", "{}{}{} of pipe {} and segment {} is no action", stage, letter(phase), microbatch, pipe,
                segment)
        .hint("stages and segments are 0..65535, microbatches not negative, pipes 0 or 1");
  }
  Action& a = emplace_back();
  a.phase = phase;
  a.pipe = PipeId(pipe);
  a.stage = StageId(stage);
  a.microbatch = MicrobatchId(microbatch);
  a.segment = segment;
  return *this;
}

std::size_t Schedule::actions() const {
  std::size_t n = 0;
  for (const Row& row : rows) n += row.size();
  return n;
}

StagePlacement placement(const std::vector<std::vector<int>>& actors) {
  StagePlacement p;
  for (const std::vector<int>& of_pipe : actors) {
    p.push_back({});
    for (const int actor : of_pipe) p.back().push_back(ActorId(actor));
  }
  return p;
}

bool Schedule::marked(ActorId actor, StorageMark::Kind kind) const {
  if (!marks.has(actor)) return false;
  const std::vector<StorageMark>& row = marks[actor];
  return std::any_of(row.begin(), row.end(), [&](const StorageMark& m) { return m.kind == kind; });
}

bool Schedule::operator==(const Schedule& o) const {
  return stages == o.stages && microbatches == o.microbatches && segments == o.segments && actor_of == o.actor_of &&
         rows.size() == o.rows.size() && std::equal(rows.begin(), rows.end(), o.rows.begin(), equal);
}

std::uint64_t Schedule::hash() const {
  std::uint64_t h = hash_of(stages, microbatches, segments, actor_of.size(), rows.size());
  for (const auto& placement : actor_of) {
    hash_into(h, placement.size());
    for (const ActorId actor : placement) hash_into(h, int(actor.value));
  }
  for (const Row& row : rows) {
    hash_into(h, row.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
      const Action& a = row[i];
      hash_into(h, u64{a.microbatch.value} << 32 | u64{a.stage.value} << 16 | u64{a.pipe.value} << 8 |
                       static_cast<std::uint64_t>(a.phase));
      hash_into(h, std::uint32_t{a.segment} << 2 | grouping(row, i));
    }
  }
  return h;
}

std::string cell(const Action& a, int stages) {
  std::string s = std::to_string(a.stage.value + a.pipe.value * stages);
  s += letter(a.phase);
  s += std::to_string(a.microbatch.value);
  if (a.segment) (s += '.') += std::to_string(a.segment);
  return s;
}

std::string Schedule::str() const {
  std::string s;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size();) {
      if (i) s += ',';
      std::size_t end = i + 1;
      while (end < row.size() && grouping(row, end) == 2) ++end;
      if (end == i + 1) {
        s += cell(row[i], stages);
      } else {
        for (std::size_t k = i; k < end; ++k) (s += k == i ? '(' : ';') += cell(row[k], stages);
        s += ")OVERLAP_F_B";
      }
      i = end;
    }
    s += '\n';
  }
  return s;
}

void check_sizes(const Request& r) {
  if (r.actors < 1) throw Error("schedule", "{} actors", r.actors).hint("give at least 1 actor");
  if (r.microbatches < 1) throw Error("schedule", "{} microbatches", r.microbatches).hint("give at least 1 microbatch");
  if (r.chunks < 1)
    throw Error("schedule", "{} chunks per actor", r.chunks).hint("give at least 1 chunk, or 0 for the default");
  if (r.segments < 1) throw Error("schedule", "{} sequence segments", r.segments).hint("give at least 1 segment");
  if (r.segments > most_stages) {
    throw Error("schedule", "{} sequence segments", r.segments).hint("give at most {} segments", most_stages);
  }
  const long long stages = 1LL * r.actors * r.chunks;
  if (stages > most_stages) {
    throw Error("schedule", "{} actors of {} chunks are {} stages", r.actors, r.chunks, stages)
        .hint("at most {} stages are supported", most_stages);
  }
  if (r.microbatches > most_actions || 3 * stages * r.microbatches > most_actions / r.segments) {
    throw Error("schedule", "{} stages times {} microbatches times {} segments are too many actions", stages,
                r.microbatches, r.segments)
        .hint("keep 3 x stages x microbatches x segments at or below {}", most_actions);
  }
}

Schedule looped(const Request& r) {
  Schedule s = empty(r, r.chunks == 0 ? 1 : r.chunks, 1);
  for (int stage = 0; stage < s.stages; ++stage) s.actor_of[down_pipe][StageId(stage)] = ActorId(stage % r.actors);
  return s;
}

Schedule v_shaped(const Request& r) {
  if (r.chunks != 0 && r.chunks != 2) {
    throw Error("schedule", "a V-shaped placement has 2 chunks per actor, not {}", r.chunks).hint("give 2 chunks");
  }
  Schedule s = empty(r, 2, 1);
  for (int stage = 0; stage < s.stages; ++stage) {
    s.actor_of[down_pipe][StageId(stage)] = ActorId(stage < r.actors ? stage : s.stages - 1 - stage);
  }
  return s;
}

Schedule bidirectional(const Request& r) {
  if (r.chunks != 0 && r.chunks != 1) {
    throw Error("schedule", "a bidirectional placement has 1 chunk per actor and pipe, not {}", r.chunks)
        .hint("give 1 chunk");
  }
  Schedule s = empty(r, 1, 2);
  for (int stage = 0; stage < s.stages; ++stage) {
    s.actor_of[down_pipe][StageId(stage)] = ActorId(stage);
    s.actor_of[up_pipe][StageId(stage)] = ActorId(r.actors - 1 - stage);
  }
  return s;
}

}  // namespace stretto

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>

#include "stretto/schedule/csv.h"

namespace stretto {
namespace {

static_assert(int(CsvKind::R) == int(Phase::R) && int(CsvKind::F) == int(Phase::F) && int(CsvKind::W) == int(Phase::W));

// The numbers below the returned one are in use. A number with less than half of the actions of the most frequent one
// is taken for a slip unless a larger number is in regular use.
std::int64_t used(const std::unordered_map<std::uint32_t, std::uint32_t>& count) {
  std::uint32_t most = 0;
  for (const auto& [number, n] : count) most = std::max(most, n);
  std::int64_t above = 0;
  for (const auto& [number, n] : count) {
    if (2 * std::uint64_t{n} >= most) above = std::max(above, std::int64_t{number} + 1);
  }
  return above;
}

// Whether most microbatches are on stages of one half only. A one-pipe schedule has every microbatch on every stage.
bool bidirectional_numbers(const CsvFile& file, std::uint32_t stages) {
  if (stages % 2) return false;
  std::unordered_map<std::uint32_t, int> halves;
  for (const auto& row : file.rows) {
    for (const CsvAction& a : row) {
      if (a.kind == CsvKind::F && a.stage < stages) halves[a.microbatch] |= a.stage < stages / 2 ? 1 : 2;
    }
  }
  std::array<std::size_t, 4> n{};
  for (const auto& [microbatch, seen] : halves) ++n[seen];
  return n[1] > 0 && n[2] > 0 && n[3] < n[1] + n[2];
}

using Mark = StorageMark::Kind;
constexpr std::pair<CsvKind, Mark> mark_cells[] = {
    {CsvKind::unshard, Mark::unshard}, {CsvKind::reshard, Mark::reshard}, {CsvKind::reduce_grad, Mark::reduce_grad}};
std::optional<Mark> mark_of(CsvKind k) {
  for (const auto& [cell, mark] : mark_cells)
    if (cell == k) return mark;
  return {};
}
CsvKind cell_of(Mark m) {
  return std::find_if(std::begin(mark_cells), std::end(mark_cells), [&](const auto& c) { return c.second == m; })
      ->first;
}

// On the actor with most of the stage's actions; a stage without any on a row that is not there.
void place(Schedule& s) {
  struct Count {
    std::uint32_t here = 0, most = 0;
  };
  IdVector<PipeId, IdVector<StageId, Count>> count(s.actor_of.size(), IdVector<StageId, Count>(s.stages));
  for (auto& placement : s.actor_of) placement.assign(s.stages, s.rows.next_id());
  for (const ActorId actor : s.rows.ids()) {
    const auto known = [&](const Action& a) { return s.actor_of.has(a.pipe) && s.actor_of[a.pipe].has(a.stage); };
    for (const Action& a : s.rows[actor]) {
      if (known(a)) ++count[a.pipe][a.stage].here;
    }
    for (const Action& a : s.rows[actor]) {
      if (!known(a)) continue;
      Count& n = count[a.pipe][a.stage];
      if (n.here > n.most) n.most = n.here, s.actor_of[a.pipe][a.stage] = actor;
      n.here = 0;
    }
  }
}

}  // namespace

Schedule schedule_of(const CsvFile& file, const CsvOptions& options) {
  std::unordered_map<std::uint32_t, std::uint32_t> of_stage, of_microbatch;
  int segments = 1;
  for (const auto& row : file.rows) {
    for (const CsvAction& a : row) {
      if (!a.computes()) continue;
      ++of_stage[a.stage];
      ++of_microbatch[a.microbatch];
      segments = std::max(segments, a.segment + 1);
    }
  }
  if (of_stage.empty()) {
    throw Error(file.name, "there is no action in {} rows", file.rows.size()).hint("write cells such as 0F0, 0B0");
  }
  if (file.rows.size() > most_actors)
    throw Error(file.name, "{} rows", file.rows.size()).hint("at most {} are possible: one per actor", most_actors);
  if (options.stages > 1 << 16) throw Error(file.name, "{} stages", options.stages).hint("at most 65536 are possible");
  Schedule s;
  s.name = file.name;
  s.segments = segments;
  s.microbatches = options.microbatches > 0 ? options.microbatches : used(of_microbatch);
  const int numbers = used(of_stage);  // of all pipes
  bool up = options.pipes == CsvPipes::two || options.pipes == CsvPipes::logical;
  if (options.pipes == CsvPipes::detect) {
    up = bidirectional_numbers(file, options.stages > 0 ? 2 * options.stages : numbers);
  }
  const bool logical = options.pipes == CsvPipes::logical;
  if (up && !logical && options.stages == 0 && numbers % 2) {
    throw Error(file.name, "{} stages are no two pipes of equal length", numbers)
        .hint("the up pipe's stages are numbered S to 2S-1; a one-pipe schedule needs no option");
  }
  s.stages = options.stages > 0 ? options.stages : up && !logical ? numbers / 2 : numbers;
  s.actor_of.resize(up ? 2 : 1);
  s.rows.resize(file.rows.size());
  for (const ActorId r : s.rows.ids()) {
    for (const CsvAction& c : file.rows[r.value]) {
      const bool above = up && !logical && c.stage >= s.stages;
      const bool second = logical ? std::cmp_greater_equal(c.microbatch, s.microbatches / 2) : above;
      const int stage = above ? c.stage - s.stages : c.stage;
      if (const auto mark = mark_of(c.kind)) {
        s.marks.resize(file.rows.size());
        StorageMark& m = s.marks[r].emplace_back();
        m.kind = *mark;
        m.pipe = above ? up_pipe : down_pipe;
        m.stage = StageId(stage);
        m.before = ActionId(s.rows[r].size());
      } else if (c.computes()) {
        s.rows[r].add(Phase(c.kind), stage, c.microbatch, second, c.segment);
        s.rows[r].back().overlap = c.overlap;
      }
    }
  }
  place(s);
  return s;
}

Schedule read_csv(std::string_view text, std::string_view file_name, const CsvOptions& options) {
  const CsvFile file = parse_csv(text, file_name, options.dialect);
  Schedule s = schedule_of(file, options);
  refuse(check_communication(file, s));
  return s;
}

CsvFile csv_of(const Schedule& s, CsvDialect dialect) {
  CsvFile file{.name = s.name, .dialect = dialect};
  file.rows.resize(s.rows.size());
  for (const ActorId r : s.rows.ids()) {
    std::vector<CsvAction>& row = file.rows[r.value];
    row.reserve(s.rows[r].size());
    const std::vector<StorageMark> none;
    const std::vector<StorageMark>& marks = s.marks.has(r) ? s.marks[r] : none;
    auto mark = marks.begin();
    const auto put = [&](CsvKind kind, int stage) -> CsvAction& {
      CsvAction& c = row.emplace_back();
      c.kind = kind;
      c.stage = stage;
      return c;
    };
    const auto put_marks = [&](std::size_t position) {
      for (; mark != marks.end() && mark->before.value <= position; ++mark)
        put(cell_of(mark->kind), mark->stage.value + mark->pipe.value * s.stages);
    };
    for (std::size_t i = 0; i < s.rows[r].size(); ++i) {
      const Action& a = s.rows[r][i];
      if (a.overlap == 0 || i == 0 || s.rows[r][i - 1].overlap != a.overlap) put_marks(i);  // never inside a group
      const int number = a.stage.value + a.pipe.value * s.stages;
      if (number > 0xFFFF) {
        throw Error("csv", "stage {} cannot be written", number).hint("stage numbers end at 65535");
      }
      if (dialect == CsvDialect::old && a.phase == Phase::R) {
        throw Error("csv", "the older notation has no recompute action").hint("write the current notation");
      }
      CsvAction& c = put(CsvKind(a.phase), number);
      c.segment = a.segment;
      c.microbatch = a.microbatch.value;
      c.overlap = a.overlap;
    }
    put_marks(s.rows[r].size());
  }
  return file;
}

std::string write_csv(const Schedule& s, CsvDialect dialect) { return csv_of(s, dialect).str(); }

}  // namespace stretto

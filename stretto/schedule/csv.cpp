#include "stretto/schedule/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <unordered_map>

namespace stretto {

namespace {

struct KindName {
  CsvKind kind;
  std::string_view now, old;  // "" where the dialect has no such kind
  bool microbatch;
};
constexpr EnumArray<CsvKind, KindName, 12> kind_names{{{
    {CsvKind::F, "F", "F", true},
    {CsvKind::B, "B", "BW", true},
    {CsvKind::I, "I", "B", true},
    {CsvKind::W, "W", "W", true},
    {CsvKind::R, "R", "", true},
    {CsvKind::send_f, "SEND_F", "SEND_F", true},
    {CsvKind::recv_f, "RECV_F", "RECV_F", true},
    {CsvKind::send_b, "SEND_B", "SEND_B", true},
    {CsvKind::recv_b, "RECV_B", "RECV_B", true},
    {CsvKind::unshard, "UNSHARD", "UNSHARD", false},
    {CsvKind::reshard, "RESHARD", "RESHARD", false},
    {CsvKind::reduce_grad, "REDUCE_GRAD", "REDUCE_GRAD", false},
}}};
static_assert(int(CsvKind::R) == int(Phase::R) && int(CsvKind::F) == int(Phase::F) && int(CsvKind::W) == int(Phase::W));

constexpr std::string_view overlap_name = "OVERLAP_F_B";
constexpr std::size_t most_faults = 100;  // a file that is no schedule at all need not be quoted in full

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

// Any bytes, made fit for a message.
std::string printable(std::string_view s) {
  std::string out;
  for (const char c : s.substr(0, 40)) out += c >= ' ' && c <= '~' ? c : '?';
  return s.size() > 40 ? out + "..." : out;
}

bool digit(char c) { return c >= '0' && c <= '9'; }

class Parser {
 public:
  Parser(std::string_view text, CsvFile& file) : text_(text), file_(file) {}

  void parse() {
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
    const std::size_t first = text_.find('\n');
    file_.crlf = first != text_.npos && text_.substr(0, first).ends_with('\r');
    file_.final_newline = text_.ends_with('\n');
    if (file_.final_newline) text_.remove_suffix(1);
    for (line_ = 1;; ++line_) {
      const std::size_t end = text_.find('\n');
      std::string_view line = text_.substr(0, end);
      if (line.ends_with('\r')) line.remove_suffix(1);
      row(line);
      if (end == text_.npos) break;
      text_.remove_prefix(end + 1);
    }
    if (!file_.final_newline && file_.rows.size() > 1 && file_.rows.back().empty()) {
      file_.rows.pop_back();  // blanks after the last newline are no line
      file_.final_newline = true;
    }
    if (more_) faults_.push_back(fault(file_.name, "", "{} more cells are wrong", more_));
    refuse(std::move(faults_));
    if (std::all_of(file_.rows.begin(), file_.rows.end(), [](const auto& r) { return r.empty(); })) {
      throw Error(file_.name, "the file is empty").hint("one line per actor, cells such as 0F0 separated by commas");
    }
  }

 private:
  void row(std::string_view line) {
    auto& actions = file_.rows.emplace_back();
    std::uint32_t groups = 0;
    for (std::size_t at = 0;;) {
      const std::size_t comma = std::min(line.find(',', at), line.size());
      column_ = at + 1;
      cell_ = trimmed(line.substr(at, comma - at));
      if (cell_.empty()) {
        // A line without a single cell is an actor without actions, not one idle slot.
        if (!trimmed(line).empty()) actions.push_back({.column = column_});
      } else if (cell_.front() == '(') {
        group(actions, groups);
      } else if (auto a = action(cell_, 0)) {
        actions.push_back(*a);
      }
      if (comma == line.size()) return;
      at = comma + 1;
    }
  }

  void group(std::vector<CsvAction>& actions, std::uint32_t& groups) {
    const std::size_t close = cell_.find(')');
    if (close == cell_.npos) return wrong("close the group: (0F1;1B0)OVERLAP_F_B", "the group has no )");
    if (const std::string_view name = trimmed(cell_.substr(close + 1)); name != overlap_name) {
      return wrong("write (0F1;1B0)OVERLAP_F_B", "a group is called '{}'", printable(name));
    }
    ++groups;
    for (std::string_view rest = cell_.substr(1, close - 1);;) {
      const std::size_t end = std::min(rest.find(';'), rest.size());
      const std::string_view member = trimmed(rest.substr(0, end));
      if (member.empty()) return wrong("name an action, or remove the ;", "a member of the group is empty");
      if (auto a = action(member, groups)) {
        if (!a->computes())
          return wrong("move it to a cell of its own", "'{}' cannot be overlapped", printable(member));
        actions.push_back(*a);
      } else {
        return;
      }
      if (end == rest.size()) return;
      rest.remove_prefix(end + 1);
    }
  }

  std::optional<CsvAction> action(std::string_view s, std::uint32_t overlap) {
    CsvAction a{.overlap = overlap, .column = column_};
    std::uint64_t number = 0;
    if (!take(s, 0xFFFF, number, "stage")) return {};
    a.stage = number;
    const std::size_t letters = std::find_if(s.begin(), s.end(), digit) - s.begin();
    const std::string_view name = s.substr(0, letters);
    s.remove_prefix(letters);
    const auto known = std::find_if(kind_names.begin(), kind_names.end(), [&](const KindName& k) {
      return !name.empty() && name == (file_.dialect == CsvDialect::old ? k.old : k.now);
    });
    if (known == kind_names.end()) {
      if (name == "BW") {
        wrong("if the file is of the older notation (B input gradient, BW full backward) say so: dialect old",
              "there is no kind 'BW'");
      } else if (name == "I" && file_.dialect == CsvDialect::old) {
        wrong("the file is of the current notation: leave the dialect option out",
              "the older notation has no kind 'I'");
      } else {
        wrong(
            "a cell is a stage, one of F B I W R SEND_F RECV_F SEND_B RECV_B UNSHARD RESHARD REDUCE_GRAD, and a "
            "microbatch",
            "there is no kind '{}'", printable(name));
      }
      return {};
    }
    a.kind = known->kind;
    if (known->microbatch) {
      if (!take(s, std::numeric_limits<std::int32_t>::max() - 1, number, "microbatch")) return {};
      a.microbatch = number;
      if (s.starts_with('.')) {
        s.remove_prefix(1);
        if (!take(s, 0xFFFF - 1, number, "sequence piece")) return {};
        a.piece = number;
      }
    }
    if (!s.empty()) {
      wrong("separate actions with commas", "'{}' is left over after the action", printable(s));
      return {};
    }
    return a;
  }

  bool take(std::string_view& s, std::uint64_t most, std::uint64_t& number, std::string_view what) {
    std::size_t n = 0;
    number = 0;
    for (; n < s.size() && digit(s[n]); ++n) {
      if (number <= most) number = number * 10 + (s[n] - '0');
    }
    if (n == 0) {
      wrong("write stage, kind, microbatch: 2F3", "the {} is missing", what);
      return false;
    }
    if (number > most) {
      wrong("check the number", "{} {} is above {}", what, printable(s.substr(0, n)), most);
      return false;
    }
    s.remove_prefix(n);
    return true;
  }

  template <class... A>
  void wrong(std::string hint, fmt::format_string<A...> what, A&&... a) {
    if (faults_.size() >= most_faults) {
      ++more_;
      return;
    }
    faults_.push_back(
        fault(fmt::format("{}, line {}, column {}, cell '{}'", file_.name, line_, column_, printable(cell_)),
              std::move(hint), what, std::forward<A>(a)...));
  }

  std::string_view text_, cell_;
  CsvFile& file_;
  std::size_t line_ = 1, more_ = 0;
  std::uint32_t column_ = 1;
  std::vector<Fault> faults_;
};

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

std::string cell(const CsvAction& a, CsvDialect dialect) {
  if (a.kind == CsvKind::idle) return {};
  const KindName& k = kind_names[a.kind];
  std::string s = fmt::format("{}{}", a.stage, dialect == CsvDialect::old && !k.old.empty() ? k.old : k.now);
  if (k.microbatch) s += std::to_string(a.microbatch);
  if (a.piece) s += fmt::format(".{}", a.piece);
  return s;
}

std::string CsvFile::str() const {
  const std::string_view end = crlf ? "\r\n" : "\n";
  std::string s;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (r) s += end;
    const auto& row = rows[r];
    for (std::size_t i = 0; i < row.size();) {
      if (i) s += ',';
      std::size_t next = i + 1;
      if (row[i].overlap == 0) {
        s += cell(row[i], dialect);
      } else {
        while (next < row.size() && row[next].overlap == row[i].overlap) ++next;
        for (std::size_t k = i; k < next; ++k) s += (k == i ? '(' : ';') + cell(row[k], dialect);
        s += ')';
        s += overlap_name;
      }
      i = next;
    }
  }
  if (final_newline) s += end;
  return s;
}

CsvFile parse_csv(std::string_view text, std::string_view file_name, CsvDialect dialect) {
  CsvFile file{.name = std::string(file_name), .dialect = dialect};
  Parser(text, file).parse();
  return file;
}

Schedule schedule_of(const CsvFile& file, const CsvOptions& options) {
  std::unordered_map<std::uint32_t, std::uint32_t> of_stage, of_microbatch;
  int pieces = 1;
  for (const auto& row : file.rows) {
    for (const CsvAction& a : row) {
      if (!a.computes()) continue;
      ++of_stage[a.stage];
      ++of_microbatch[a.microbatch];
      pieces = std::max(pieces, a.piece + 1);
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
  s.pieces = pieces;
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
        s.rows[r].add(Phase(c.kind), stage, c.microbatch, second, c.piece);
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
      c.piece = a.piece;
      c.microbatch = a.microbatch.value;
      c.overlap = a.overlap;
    }
    put_marks(s.rows[r].size());
  }
  return file;
}

std::string write_csv(const Schedule& s, CsvDialect dialect) { return csv_of(s, dialect).str(); }

}  // namespace stretto

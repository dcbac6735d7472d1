#include "stretto/schedule/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

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

constexpr std::string_view overlap_name = "OVERLAP_F_B";
constexpr std::size_t most_faults = 100;  // need not be quoted in full
constexpr std::size_t few_faults = 3;     // may be slips

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

bool is_idle(const CsvAction& a) { return a.kind == CsvKind::idle; }
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
    refuse_all_of_it();
    if (more_) faults_.push_back(fault(file_.name, "", "{} more cells are wrong", more_));
    refuse(std::move(faults_));
    if (std::all_of(file_.rows.begin(), file_.rows.end(), [](const auto& r) { return r.empty(); })) {
      throw Error(file_.name, "it is empty").hint("one line per actor, cells such as 0F0 separated by commas");
    }
  }

 private:
  // Another kind of file: what is wrong with each of its cells says nothing.
  void refuse_all_of_it() const {
    const auto none = [](const auto& r) { return std::all_of(r.begin(), r.end(), is_idle); };
    if (faults_.size() < few_faults || !std::all_of(file_.rows.begin(), file_.rows.end(), none)) return;
    throw Error(file_.name, "is no schedule: none of its cells is an action, the first wrong one is on line {}",
                first_wrong_)
        .hint("one line per actor, cells such as 0F0 separated by commas");
  }

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
        if (!take(s, 0xFFFF - 1, number, "sequence segment")) return {};
        a.segment = number;
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
    if (faults_.empty()) first_wrong_ = line_;
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
  std::size_t line_ = 1, first_wrong_ = 1, more_ = 0;
  std::uint32_t column_ = 1;
  std::vector<Fault> faults_;
};

}  // namespace

std::string cell(const CsvAction& a, CsvDialect dialect) {
  if (a.kind == CsvKind::idle) return {};
  const KindName& k = kind_names[a.kind];
  std::string s = fmt::format("{}{}", a.stage, dialect == CsvDialect::old && !k.old.empty() ? k.old : k.now);
  if (k.microbatch) s += std::to_string(a.microbatch);
  if (a.segment) s += fmt::format(".{}", a.segment);
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

}  // namespace stretto

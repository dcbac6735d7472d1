#include "stretto/cost/measured_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include "stretto/base/error.h"
#include "stretto/formats/tsv.h"

namespace stretto {
namespace {

constexpr const char* what_times_are =
    "its first line has graph, piece, actor, F, I and W with tabs between, as log.profile writes it";
constexpr int most_pieces = 1 << 20;
constexpr double longest_piece = 1e9;
constexpr int rounds_of_speeds = 200;

template <class T, class... Base>
std::optional<T> number(const std::string& text, Base... base) {
  T x{};
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), x, base...);
  if (wrong != std::errc() || end != text.data() + text.size()) return {};
  return x;
}

// The cells of one row, each asked for by the name of its column.
class TimesRow {
 public:
  TimesRow(const std::string& file, const TsvTable& table, const TsvRow& row) : file_(file), table_(table), row_(row) {}
  int index(std::string_view column) const {
    const auto x = number<int>(cell(column));
    if (!x || *x < 0 || *x >= most_pieces) throw wrong(column, "is no number of a piece or an actor");
    return *x;
  }
  double seconds(std::string_view column) const {
    const auto x = number<double>(cell(column));
    if (!x || !(*x >= 0) || *x > longest_piece) throw wrong(column, "is no time in seconds");
    return *x;
  }
  u64 graph() const {
    const auto x = number<u64>(cell("graph"), 16);
    if (!x) throw wrong("graph", "is not the 16 digits of what was computed");
    return *x;
  }

 private:
  std::string cell(std::string_view column) const { return row_.cell(table_.column(column)); }
  Error wrong(std::string_view column, std::string_view why) const {
    return Error(fmt::format("{}:{}", file_, row_.line), "{} '{}' {}", column, cell(column), why)
        .hint("{}", what_times_are);
  }

  const std::string& file_;
  const TsvTable& table_;
  const TsvRow& row_;
};

// Relative times of actors, of what is of one kind: rates of actors and of kinds by turns, until they fit.
std::vector<double> slower_actors(const MeasuredTimes& t, std::span<const u64> kinds, int actors) {
  std::vector<double> slower(actors, 1);
  for (int round = 0; round < rounds_of_speeds; ++round) {
    std::map<u64, std::pair<double, double>> usual;  // per kind: seconds, and in how many times the usual
    for (const MeasuredPiece& p : t.pieces) {
      auto& [seconds, times] = usual[kinds[p.piece]];
      seconds += p.seconds(), times += slower[p.actor];
    }
    std::vector<double> took(actors, 0), expected(actors, 0);
    for (const MeasuredPiece& p : t.pieces) {
      const auto& [seconds, times] = usual.at(kinds[p.piece]);
      took[p.actor] += p.seconds(), expected[p.actor] += seconds / times;
    }
    double logs = 0;
    for (int a = 0; a < actors; ++a) {
      if (took[a] > 0 && expected[a] > 0) slower[a] = took[a] / expected[a];
      logs += std::log(slower[a]) / actors;
    }
    for (double& s : slower) s /= std::exp(logs);
  }
  return slower;
}

}  // namespace

std::string times_tsv(const MeasuredTimes& t) {
  std::string text = "graph\tpiece\tactor\tF\tI\tW\n";
  for (const MeasuredPiece& p : t.pieces)
    text += fmt::format("{:016x}\t{}\t{}\t{:.9g}\t{:.9g}\t{:.9g}\n", t.graph, p.piece, p.actor, p.F, p.I, p.W);
  return text;
}

MeasuredTimes read_times(const std::string& file) {
  const TsvTable table = read_tsv(file, what_times_are);
  for (const char* column : {"graph", "piece", "actor", "F", "I", "W"})
    if (!table.column(column))
      throw Error(fmt::format("{}:1", file), "there is no column {}", column).hint("{}", what_times_are);
  if (table.rows.empty())
    throw Error(file, "there is no piece in it").hint("a row for each piece, below the line of columns");
  MeasuredTimes t{.file = file};
  for (const TsvRow& cells : table.rows) {
    const TimesRow row(file, table, cells);
    if (!t.pieces.empty() && row.graph() != t.graph)
      throw Error(fmt::format("{}:{}", file, cells.line), "it is of another run than the rows above it")
          .hint("one file has the times of one run");
    t.graph = row.graph();
    t.pieces.push_back({row.index("piece"), row.index("actor"), row.seconds("F"), row.seconds("I"), row.seconds("W")});
  }
  return t;
}

Times even_times(const MeasuredTimes& t, int actors) {
  std::map<int, int> rows;  // of each piece
  for (const MeasuredPiece& p : t.pieces) ++rows[p.piece];
  Times all{.F = 0, .I = 0, .W = 0};
  for (const MeasuredPiece& p : t.pieces) {
    const double share = 1.0 / (rows.at(p.piece) * actors);
    all.F += p.F * share, all.I += p.I * share, all.W += p.W * share;
  }
  return all;
}

TimesApart taken_apart(const MeasuredTimes& t, std::span<const u64> kinds, int actors) {
  const int measured = std::ranges::max(t.pieces, {}, &MeasuredPiece::actor).actor + 1;
  const std::vector<double> slower = slower_actors(t, kinds, measured);
  TimesApart apart{.pieces = std::vector<MeasuredPiece>(kinds.size())};
  std::vector<int> seen(kinds.size(), 0);
  for (const MeasuredPiece& p : t.pieces) {
    MeasuredPiece& mean = apart.pieces[p.piece];
    const double before = seen[p.piece]++, now = before + 1, by = slower[p.actor];
    mean = {p.piece, 0, (mean.F * before + p.F / by) / now, (mean.I * before + p.I / by) / now,
            (mean.W * before + p.W / by) / now};
  }
  apart.slower = measured == actors ? slower : std::vector<double>(actors, 1);
  return apart;
}

}  // namespace stretto

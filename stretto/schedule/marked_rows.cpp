#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "stretto/schedule/validate.h"

namespace stretto {

namespace {

constexpr int around = 3;  // columns shown on either side of a culprit
constexpr std::size_t most_rows = 16;

using Places = std::set<ActionPlace>;
using Cells = std::vector<std::vector<std::string>>;

// Columns near a culprit, up to the number asked for, the earliest culprits first.
std::set<int> columns_near(const Places& marks, const Schedule& s, std::size_t most) {
  int longest = 0;
  for (const Row& row : s.rows) longest = std::max<int>(longest, row.size());
  std::set<int> positions, near;
  for (const ActionPlace& p : marks) positions.insert(p.position);
  for (const int p : positions) {
    if (!near.empty() && near.size() >= most) break;
    for (int c = std::max(0, p - around); c <= p + around && c < longest; ++c) near.insert(c);
  }
  return near;
}

// All of few actors; of many those with culprits in these columns.
std::set<ActorId> actors_of(const Places& marks, const Schedule& s, const std::set<int>& columns) {
  std::set<ActorId> actors;
  for (const ActionPlace& p : marks)
    if (columns.contains(p.position) && actors.size() < most_rows) actors.insert(p.actor);
  if (s.rows.size() <= most_rows)
    for (const ActorId a : s.rows.ids()) actors.insert(a);
  return actors;
}

std::string shown(const Schedule& s, ActionPlace at, const Places& marks) {
  const Row& row = s.rows[at.actor];
  const Action& a = row[at.position];
  const auto with = [&](int j) { return j >= 0 && j < std::ssize(row) && row[j].overlap == a.overlap; };
  std::string text = cell(a, s.stages);
  if (a.overlap && !with(at.position - 1)) text = '(' + text;
  if (a.overlap && !with(at.position + 1)) text += ')';
  return marks.contains(at) ? "[" + text + "]" : text;
}

// One line of cells; where columns are left out stands a gap.
template <class Cell>
std::vector<std::string> line_of(std::string head, const std::set<int>& columns, Cell cell, auto gap) {
  std::vector<std::string> line{std::move(head)};
  int next = 0;
  for (const int c : columns) {
    if (c != next) line.push_back(gap(c));
    line.push_back(cell(c));
    next = c + 1;
  }
  return line;
}

std::string aligned(const Cells& table) {
  std::vector<std::size_t> width;
  for (const auto& line : table) {
    width.resize(std::max(width.size(), line.size()));
    for (std::size_t c = 0; c < line.size(); ++c) width[c] = std::max(width[c], line[c].size());
  }
  std::string text;
  for (const auto& line : table) {
    std::string out;
    for (std::size_t c = 0; c < line.size(); ++c) out += fmt::format("{:<{}}  ", line[c], width[c]);
    out.erase(out.find_last_not_of(' ') + 1);
    text += out + "\n";
  }
  return text;
}

}  // namespace

std::string marked_rows(const Schedule& s, const Validation& v, std::size_t most_columns) {
  Places marks;
  for (const Finding& f : v.faults) marks.insert(f.culprits.begin(), f.culprits.end());
  if (marks.empty()) return {};
  const std::set<int> columns = columns_near(marks, s, most_columns);
  const std::set<ActorId> actors = actors_of(marks, s, columns);
  Cells table{line_of(
      "", columns, [](int c) { return std::to_string(c); }, [](int) { return ".."; })};
  for (const ActorId a : actors) {
    const auto there = [&](int c) { return c < std::ssize(s.rows[a]); };
    table.push_back(line_of(
        fmt::format("actor {}", a.value), columns,
        [&](int c) {
          return there(c) ? shown(s, {a, c}, marks) : std::string();
        },
        [&](int c) { return there(c) ? ".." : ""; }));
  }
  std::string text = aligned(table);
  const auto hidden = std::count_if(marks.begin(), marks.end(), [&](const ActionPlace& p) {
    return !columns.contains(p.position) || !actors.contains(p.actor);
  });
  if (hidden) text += fmt::format("({} more marked further on)\n", hidden);
  return text;
}

}  // namespace stretto

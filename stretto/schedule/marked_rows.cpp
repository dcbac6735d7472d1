#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "stretto/schedule/validate.h"

namespace stretto {

namespace {

constexpr int around = 3;  // columns shown on either side of a culprit
constexpr std::size_t most_actors = 16;

std::string shown(const Schedule& s, const Row& row, int i, const std::set<ActionPlace>& marks, int actor) {
  const Action& a = row[std::size_t(i)];
  auto with = [&](int j) { return j >= 0 && j < int(row.size()) && row[std::size_t(j)].overlap == a.overlap; };
  std::string text = cell(a, s.stages);
  if (a.overlap && !with(i - 1)) text = '(' + text;
  if (a.overlap && !with(i + 1)) text += ')';
  return marks.contains({actor, i}) ? "[" + text + "]" : text;
}

}  // namespace

std::string marked_rows(const Schedule& s, const Validation& v, std::size_t columns) {
  std::set<ActionPlace> marks;
  for (const Finding& f : v.faults) marks.insert(f.culprits.begin(), f.culprits.end());
  if (marks.empty()) return {};

  // Columns near a culprit, up to the number asked for, the earliest culprits first.
  std::set<int> near;
  std::size_t longest = 0;
  for (const Row& row : s.rows) longest = std::max(longest, row.size());
  std::vector<int> positions;
  for (const ActionPlace& p : marks) positions.push_back(p.position);
  std::sort(positions.begin(), positions.end());
  for (const int p : positions) {
    if (!near.empty() && near.size() >= columns) break;
    for (int c = std::max(0, p - around); c <= p + around && c < int(longest); ++c) near.insert(c);
  }
  std::set<int> actors;
  for (const ActionPlace& p : marks) {
    if (near.contains(p.position) && actors.size() < most_actors) actors.insert(p.actor);
  }
  if (s.rows.size() <= most_actors) {
    for (int a = 0; a < s.actors(); ++a) actors.insert(a);
  }

  std::vector<std::vector<std::string>> table(1, {""});
  int before = -1;
  for (const int c : near) {
    if (c != before + 1) table[0].push_back("..");
    table[0].push_back(std::to_string(c));
    before = c;
  }
  for (const int a : actors) {
    auto& line = table.emplace_back();
    line.push_back(fmt::format("actor {}", a));
    const Row& row = s.rows[std::size_t(a)];
    before = -1;
    for (const int c : near) {
      if (c != before + 1) line.push_back(c < int(row.size()) ? ".." : "");
      line.push_back(c < int(row.size()) ? shown(s, row, c, marks, a) : "");
      before = c;
    }
  }
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
  const auto hidden = std::count_if(marks.begin(), marks.end(), [&](const ActionPlace& p) {
    return !near.contains(p.position) || !actors.contains(p.actor);
  });
  if (hidden) text += fmt::format("({} more marked further on)\n", hidden);
  return text;
}

}  // namespace stretto

#include "stretto/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace stretto {

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string s;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i) s += separator;
    s += parts[i];
  }
  return s;
}

// Letters added, left out, exchanged, or swapped with their neighbour.
int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> two_above(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(two_above, above);
    std::swap(above, row);
    row[0] = above[0] + 1;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], two_above[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::optional<std::string> nearest(std::string_view wrong, std::span<const std::string> candidates) {
  std::optional<std::string> best;
  int least = std::max<int>(2, wrong.size() / 3) + 1;
  for (const std::string& c : candidates) {
    const std::size_t apart = std::max(wrong.size(), c.size()) - std::min(wrong.size(), c.size());
    if (std::cmp_greater_equal(apart, least) && !c.starts_with(wrong))
      continue;  // saves the comparison of very long words
    int d = edit_distance(wrong, c);
    if (!wrong.empty() && c.starts_with(wrong)) d = std::min(d, 1);
    if (d < least) least = d, best = c;
  }
  return best;
}

std::string divisors_near(std::int64_t of, std::int64_t near) {
  near = std::min(near, of);
  std::int64_t below = near, above = near;
  while (below > 1 && of % below != 0) --below;
  while (above < of && of % above != 0) ++above;
  return below == above ? fmt::format("{}", below) : fmt::format("{} or {}", below, above);
}

namespace {

bool continues(char c) { return (c & 0xC0) == 0x80; }  // within a character of UTF-8

// Both ends of what is too long, whole characters of them.
std::string ends_of(std::string_view text, std::size_t longest) {
  if (text.size() <= longest) return std::string(text);
  std::size_t head = longest / 3 * 2, tail = text.size() - longest / 3;
  while (head > 0 && continues(text[head])) --head;
  while (tail < text.size() && continues(text[tail])) ++tail;
  return fmt::format("{}...({} bytes)...{}", text.substr(0, head), tail - head, text.substr(tail));
}

std::string without_controls(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const unsigned char byte = text[at], next = at + 1 < text.size() ? text[at + 1] : 0;
    const bool second_set = byte == 0xC2 && next >= 0x80 && next < 0xA0;  // U+0080 to U+009F
    if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7F)
      out += fmt::format("\\x{:02x}", byte);
    else if (second_set)
      out += fmt::format("\\x{:02x}", next), ++at;
    else
      out += text[at];
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text, std::size_t longest_word, std::size_t longest_text) {
  const std::string most = ends_of(text, 16 * longest_text);  // all that follows is linear in this
  std::string out;
  for (std::size_t at = 0; at < most.size();) {
    const std::size_t end = std::min(most.find_first_of(" \n", at), most.size());
    out += ends_of(without_controls(std::string_view(most).substr(at, end - at)), longest_word);
    if (end < most.size()) out += most[end];
    at = end + 1;
  }
  return ends_of(out, longest_text);
}

std::string human_bytes(double b) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  int u = 0;
  while (std::abs(b) >= 1024 && u < 5) b /= 1024, ++u;
  return u == 0 ? fmt::format("{:.0f} B", b) : fmt::format("{:.{}f} {}", b, b < 10 ? 2 : b < 100 ? 1 : 0, units[u]);
}

std::string decimal_bytes(double b) {
  if (b == 0) return "0";
  if (b >= 1e8) return fmt::format("{:.1f} GB", b / 1e9);
  if (b >= 1e5) return fmt::format("{:.3g} MB", b / 1e6);
  return b >= 1e3 ? fmt::format("{:.3g} kB", b / 1e3) : fmt::format("{:.0f} B", b);
}

std::string human_count(double n) {
  const char* const units[] = {"", "k", "M", "G", "T", "P"};
  int u = 0;
  while (std::abs(n) >= 1000 && u < 5) n /= 1000, ++u;
  if (std::abs(n) >= 1e6) return fmt::format("{:.3g}{}", n, units[u]);
  return u == 0 ? fmt::format("{:.0f}", n) : fmt::format("{:.{}f}{}", n, n < 10 ? 2 : n < 100 ? 1 : 0, units[u]);
}

std::string human_seconds(double s) {
  if (s < 1e-3) return fmt::format("{:.1f} us", s * 1e6);
  if (s < 1) return fmt::format("{:.1f} ms", s * 1e3);
  if (s < 100) return fmt::format("{:.1f} s", s);
  if (!(s < 1e9)) return fmt::format("{:.3g} s", s);
  const int whole = s;
  return s < 6000 ? fmt::format("{}m{:02}s", whole / 60, whole % 60)
                  : fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
}

namespace {
bool numeric(const std::string& s) {
  return !s.empty() && ((s[0] >= '0' && s[0] <= '9') || ((s[0] == '-' || s[0] == '.') && s.size() > 1));
}
std::size_t width_of(const std::string& s) {  // code points: good enough for what we print
  return std::count_if(s.begin(), s.end(), [](char c) { return !continues(c); });
}
}  // namespace

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> width;
  std::vector<bool> right;
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t c = 0; c < rows[r].size(); ++c) {
      if (c >= width.size()) width.resize(c + 1, 0), right.resize(c + 1, rows.size() > 1);
      width[c] = std::max(width[c], width_of(rows[r][c]));
      if (r > 0 && !rows[r][c].empty() && !numeric(rows[r][c])) right[c] = false;
    }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string pad(width[c] - width_of(row[c]), ' ');
      if (c) line += "  ";
      line += right[c] ? pad + row[c] : row[c] + pad;
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    out += line + "\n";
  }
  return out;
}

}  // namespace stretto

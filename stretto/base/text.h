// Small text helpers: `join({"a","b"}, ", ")`, `nearest("lyers", names)`, `human_bytes(1<<20) == "1.0 MiB"`.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stretto {

std::string join(std::span<const std::string> parts, std::string_view separator);
int edit_distance(std::string_view a, std::string_view b);
// The candidate nearest to `wrong`, if one is near enough to be what was meant.
std::optional<std::string> nearest(std::string_view wrong, std::span<const std::string> candidates);
// The divisors of `of` next to `near`, for hints: "4 or 8", or the one that there is.
std::string divisors_near(std::int64_t of, std::int64_t near);
// What a terminal may show: control characters as \x1b, and of words and texts that are longer than the most their two
// ends. Line ends and tabs stay.
std::string printable(std::string_view text, std::size_t longest_word, std::size_t longest_text);
std::string human_bytes(double bytes);
std::string decimal_bytes(double bytes);  // as memory of devices is given: "80.0 GB", "37.5 MB"
std::string human_count(double n);        // 1234567 -> "1.23M"
std::string human_seconds(double s);      // "1.2 ms", "3.4 s", "2m05s"

// Rows of cells as aligned columns; the first row is the header. Numbers are right-aligned.
std::string table(const std::vector<std::vector<std::string>>& rows);

}  // namespace stretto

// A tab-separated table whose first line names its columns.
//
//   const TsvTable table = read_tsv("runs.tsv", "its first line has run and seconds with a tab between");
//   for (const TsvRow& row : table.rows) fmt::print("{}\n", row.cell(table.column("seconds")));
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stretto {

struct TsvRow {
  int line = 0;  // in the file, from 1
  std::vector<std::string> cells;
  std::string cell(std::optional<std::size_t> column) const;  // "" where there is none
};

struct TsvTable {
  std::vector<std::string> columns;
  std::vector<TsvRow> rows;  // empty lines are left out
  std::optional<std::size_t> column(std::string_view name) const;
};

// Lines may end in "\r\n". A file without a first line, and a column that stands there twice, are refused with this
// hint.
TsvTable read_tsv(const std::string& file, std::string_view hint);

}  // namespace stretto

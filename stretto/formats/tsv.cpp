#include "stretto/formats/tsv.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/formats/mapped_file.h"

namespace stretto {
namespace {

std::vector<std::string> parts_of(std::string_view text, char separator) {
  std::vector<std::string> all;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    all.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return all;
}

}  // namespace

std::string TsvRow::cell(std::optional<std::size_t> column) const {
  return column && *column < cells.size() ? cells[*column] : "";
}

std::optional<std::size_t> TsvTable::column(std::string_view name) const {
  const auto it = std::find(columns.begin(), columns.end(), name);
  return it == columns.end() ? std::nullopt : std::optional<std::size_t>(it - columns.begin());
}

TsvTable read_tsv(const std::string& file, std::string_view hint) {
  const MappedFile mapped(file);
  TsvTable table;
  int number = 0;
  for (std::string& line : parts_of(mapped.text(), '\n')) {
    ++number;
    if (line.ends_with('\r')) line.pop_back();
    if (number == 1)
      table.columns = parts_of(line, '\t');
    else if (!line.empty())
      table.rows.push_back({number, parts_of(line, '\t')});
  }
  if (table.columns == std::vector<std::string>{""}) throw Error(file, "its first line is empty").hint("{}", hint);
  for (auto it = table.columns.begin(); it != table.columns.end(); ++it)
    if (std::find(table.columns.begin(), it, *it) != it)
      throw Error(fmt::format("{}:1", file), "the column '{}' stands there twice", *it).hint("{}", hint);
  return table;
}

}  // namespace stretto

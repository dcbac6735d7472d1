#include "stretto/run/inner/metrics.h"

#include "stretto/base/files.h"
#include "stretto/base/text.h"
#include "stretto/formats/atomic_file.h"
#include "stretto/formats/mapped_file.h"

namespace stretto {
namespace {

constexpr std::size_t most_named = 5;  // damaged lines, in a note

std::optional<Field> fields_of(std::string_view line, const std::filesystem::path& path) {
  try {
    return read_json(line, path.string());
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Calls f(line, its number, its fields if it can be read) for all that end as lines do.
template <class F>
void for_lines(const MappedFile& file, F f) {
  i64 number = 0;
  for (std::string_view rest = file.text(); rest.find('\n') != rest.npos;) {
    const std::string_view line = rest.substr(0, rest.find('\n') + 1);
    rest.remove_prefix(line.size());
    f(line, ++number, fields_of(line, file.path()));
  }
}

std::optional<i64> step_in(const std::optional<Field>& fields) {
  const Field* step = fields ? fields->find("step") : nullptr;
  const i64* number = step ? std::get_if<i64>(&step->value) : nullptr;
  return number ? std::optional(*number) : std::nullopt;
}

// Where nothing is yet: one that was damaged before may lie there.
std::filesystem::path place_for_damaged(const std::filesystem::path& path) {
  std::filesystem::path place = path.string() + ".damaged";
  for (int n = 2; is_there(place); ++n) place = fmt::format("{}.damaged-{}", path.string(), n);
  return place;
}

}  // namespace

void MetricsFile::write(Field::Table line) { file_.append(write_json(Field(std::move(line))) + "\n"); }

std::vector<Field> read_metrics(const std::filesystem::path& path) {
  std::vector<Field> lines;
  if (!is_there(path)) return lines;
  for_lines(MappedFile(path), [&](std::string_view, i64, std::optional<Field> fields) {
    if (fields) lines.push_back(std::move(*fields));
  });
  return lines;
}

std::string cut_metrics(const std::filesystem::path& path, i64 last) {
  if (!is_there(path)) return "";
  const MappedFile file(path);
  std::string kept;
  std::vector<std::string> damaged;  // numbers of lines
  for_lines(file, [&](std::string_view line, i64 number, const std::optional<Field>& fields) {
    const std::optional<i64> step = step_in(fields);
    if (!step)
      damaged.push_back(std::to_string(number));
    else if (*step <= last)
      kept += line;
  });
  std::string note;
  if (!damaged.empty()) {
    const std::filesystem::path as_it_was = place_for_damaged(path);
    write_file(as_it_was, file.text());
    const std::size_t count = damaged.size();
    damaged.resize(std::min(count, most_named));
    note = fmt::format("note: {} damaged line{} of {} ({}{}) {} left out; the file as it was is {}", count,
                       count == 1 ? "" : "s", path.string(), join(damaged, ", "), count > most_named ? ", ..." : "",
                       count == 1 ? "is" : "are", as_it_was.string());
  }
  if (kept.size() != file.text().size()) write_file(path, kept);
  return note;
}

}  // namespace stretto

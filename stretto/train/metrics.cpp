#include "stretto/train/metrics.h"

#include <cerrno>
#include <cstring>

#include "stretto/formats/atomic_file.h"
#include "stretto/formats/mapped_file.h"

namespace stretto {
namespace {

// Calls f(line, its fields) until it says no or a line is none.
template <class F>
void for_lines(const MappedFile& file, F f) {
  for (std::string_view rest = file.text(); rest.find('\n') != rest.npos;) {
    const std::string_view line = rest.substr(0, rest.find('\n') + 1);
    rest.remove_prefix(line.size());
    Field fields;
    try {
      fields = read_json(line, file.path().string());
    } catch (const Error&) {
      return;
    }
    if (!f(line, std::move(fields))) return;
  }
}

}  // namespace

MetricsFile::MetricsFile(std::filesystem::path path) : path_(std::move(path)), file_(std::fopen(path_.c_str(), "ae")) {
  if (!file_)
    throw Error("metrics", "cannot write '{}': {}", path_.string(), std::strerror(errno)).as(Error::Kind::run);
}

MetricsFile::~MetricsFile() { std::fclose(file_); }

void MetricsFile::write(Field::Table line) {
  const std::string text = write_json(Field(std::move(line))) + "\n";
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size() || std::fflush(file_) != 0)
    throw Error("metrics", "cannot write '{}': {}", path_.string(), std::strerror(errno)).as(Error::Kind::run);
}

std::vector<Field> read_metrics(const std::filesystem::path& path) {
  std::vector<Field> lines;
  if (!std::filesystem::exists(path)) return lines;
  const MappedFile file(path);
  for_lines(file, [&](std::string_view, Field fields) {
    lines.push_back(std::move(fields));
    return true;
  });
  return lines;
}

void cut_metrics(const std::filesystem::path& path, i64 last) {
  if (!std::filesystem::exists(path)) return;
  const MappedFile file(path);
  std::string kept;
  for_lines(file, [&](std::string_view line, const Field& fields) {
    const Field* step = fields.find("step");
    const i64* number = step ? std::get_if<i64>(&step->value) : nullptr;
    if (!number || *number > last) return false;
    kept += line;
    return true;
  });
  if (kept.size() != file.text().size()) write_file(path, kept);
}

}  // namespace stretto

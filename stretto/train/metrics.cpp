#include "stretto/train/metrics.h"

#include <cerrno>
#include <cstring>

#include "stretto/formats/atomic_file.h"
#include "stretto/formats/mapped_file.h"

namespace stretto {

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

void cut_metrics(const std::filesystem::path& path, i64 last) {
  if (!std::filesystem::exists(path)) return;
  const MappedFile file(path);
  std::string kept;
  for (std::string_view rest = file.text(); rest.find('\n') != rest.npos;) {
    const std::string_view line = rest.substr(0, rest.find('\n') + 1);
    rest.remove_prefix(line.size());
    Field fields;
    try {
      fields = read_json(line, path.string());
    } catch (const Error&) {
      break;
    }
    const Field* step = fields.find("step");
    const i64* number = step ? std::get_if<i64>(&step->value) : nullptr;
    if (!number || *number > last) break;
    kept += line;
  }
  if (kept.size() != file.text().size()) write_file(path, kept);
}

}  // namespace stretto

#include "stretto/train/metrics.h"

#include <cerrno>
#include <cstring>

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

}  // namespace stretto

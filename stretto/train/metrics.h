// metrics.jsonl: one JSON object per step, with 17 significant digits, so that
// nothing is lost. A line is in the file as soon as its step has ended.
//
//   MetricsFile metrics(directory / "metrics.jsonl");
//   metrics.write({{"step", 1}, {"loss", 5.5}});
#pragma once
#include <cstdio>
#include <filesystem>
#include <vector>

#include "stretto/formats/fields.h"

namespace stretto {

class MetricsFile {
 public:
  explicit MetricsFile(std::filesystem::path path);
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;
  void write(Field::Table line);  // Error when the disk is full

 private:
  std::filesystem::path path_;
  std::FILE* file_;
};

std::vector<Field> read_metrics(const std::filesystem::path&);  // its lines, as far as they are whole; none: no file

// Before a run goes on after `last` steps: later lines, and one that was cut off while it was written, are removed.
void cut_metrics(const std::filesystem::path& path, i64 last);

}  // namespace stretto

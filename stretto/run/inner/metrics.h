// metrics.jsonl: one JSON object per step, with 17 significant digits, so that
// nothing is lost. A line is in the file as soon as its step has ended, or waits for room (see RecordFile).
//
//   MetricsFile metrics(directory / "metrics.jsonl");
//   metrics.write({{"step", 1}, {"loss", 5.5}});
#pragma once
#include <filesystem>
#include <vector>

#include "stretto/formats/fields.h"
#include "stretto/formats/record_file.h"

namespace stretto {

class MetricsFile {
 public:
  explicit MetricsFile(std::filesystem::path path) : file_(std::move(path)) {}
  void write(Field::Table line);
  const std::string& trouble() const { return file_.trouble(); }

 private:
  RecordFile file_;
};

std::vector<Field> read_metrics(const std::filesystem::path&);  // the lines that can be read; none: no file

// Before a run goes on after `last` steps: later lines, and one that was cut off while it was written, are removed.
// Damaged lines go too; then the file as it was stays beside it, and the note that is returned says so, else "".
std::string cut_metrics(const std::filesystem::path& path, i64 last);

}  // namespace stretto

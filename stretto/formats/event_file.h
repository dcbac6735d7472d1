// TensorBoard event files. Each scalar is one record, written at once: whoever reads the file while the run goes on, or
// after it broke off, sees whole records. A full disk ends nothing: see RecordFile.
//
//   EventFile events("runs/1");
//   events.scalar("train/loss", step, loss);
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "stretto/base/id.h"
#include "stretto/formats/record_file.h"

namespace stretto {

class EventFile {
 public:
  struct Options {
    std::optional<double> wall_time = std::nullopt;  // of the first event, in seconds since 1970; default: now
    std::string name = "";                           // of the file; default: events.out.tfevents.TIME.HOST.PID.0
    std::string writer = "stretto";                  // recorded in the first event; empty: not recorded
  };
  explicit EventFile(const std::filesystem::path& directory);
  EventFile(const std::filesystem::path& directory, const Options& options);

  void scalar(std::string_view tag, i64 step, double value, std::optional<double> wall_time = std::nullopt);
  const std::filesystem::path& path() const { return file_.path(); }
  const std::string& trouble() const { return file_.trouble(); }

 private:
  EventFile(const std::filesystem::path& directory, const Options& options, double time);
  void record(std::string_view event);
  RecordFile file_;
};

std::uint32_t crc32c(std::string_view bytes);

}  // namespace stretto

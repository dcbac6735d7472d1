// A file that whole records are appended to, each in the file as soon as it is given. What cannot be written (a full
// disk) waits and is tried again with the next one, so that whoever reads the file never sees half a record and, when
// there is room again, misses none.
//
//   RecordFile file("metrics.jsonl");
//   file.append("{\"step\":1}\n");
//   if (!file.trouble().empty()) ...
#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "stretto/base/fd.h"

namespace stretto {

class RecordFile {
 public:
  explicit RecordFile(std::filesystem::path);  // made when there is none; Error: it cannot be, or is a pipe

  void append(std::string_view record);
  // Why the last record is not in the file, with its name; "" when everything is.
  const std::string& trouble() const { return trouble_; }
  const std::filesystem::path& path() const { return path_; }

  static constexpr std::size_t most_waiting = 1 << 26;  // bytes; later records are lost then

 private:
  void write_waiting();
  std::filesystem::path path_;
  Fd file_;
  std::size_t whole_ = 0;  // bytes of whole records in the file
  std::string waiting_, trouble_;
};

}  // namespace stretto

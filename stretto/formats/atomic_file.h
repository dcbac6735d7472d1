// A file that appears whole or not at all: bytes go to a temporary file beside it, commit() makes them durable and
// renames. Without a commit (an error, an exception) the temporary file is removed and the old file stays as it was.
//
//   AtomicFile file("config.toml");
//   file.write("steps = 3\n");
//   file.commit();
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "stretto/base/fd.h"
#include "stretto/formats/interrupt.h"

namespace stretto {

class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  void write_at(std::size_t offset,
                std::span<const std::byte> bytes);  // over bytes already written, e.g. a count in a header
  void commit();                                    // flush, fsync, rename, fsync of the directory

 private:
  void drain();
  void put(std::size_t offset, std::span<const std::byte> bytes);
  [[noreturn]] void fail(const char* doing) const;

  Unfinished unfinished_;
  std::filesystem::path path_, temporary_;
  Fd file_;
  std::size_t size_ = 0;           // bytes handed to the system so far
  std::vector<std::byte> buffer_;  // so that many small writes are few system calls
};

void write_file(const std::filesystem::path& path, std::string_view text);  // the three lines above
// An Error when that is a directory, or lies in none: before work whose result is to be written there.
void check_directory_of(const std::filesystem::path& file);

// Whether a process had begun to write this, an AtomicFile's or an AtomicDirectory's, and maybe was killed.
bool is_unfinished(const std::filesystem::path&);
void remove_unfinished(const std::filesystem::path& directory);  // in which nobody else writes

}  // namespace stretto

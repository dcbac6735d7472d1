// A directory that appears whole or not at all: files go to a temporary one beside it, commit() renames. Without a
// commit (an error, an exception) the temporary one is removed with all that is in it.
//
//   AtomicDirectory export("tales-hf");
//   write_file(export.directory() / "config.json", text);
//   export.commit();
#pragma once
#include <filesystem>

#include "stretto/formats/interrupt.h"

namespace stretto {

class AtomicDirectory {
 public:
  explicit AtomicDirectory(const std::filesystem::path&);  // what is missing above it is made
  ~AtomicDirectory();
  AtomicDirectory(const AtomicDirectory&) = delete;
  AtomicDirectory& operator=(const AtomicDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const std::filesystem::path& directory() const { return temporary_; }  // to write into
  void commit();  // nothing, or an empty directory, stands at its place
 private:
  Unfinished unfinished_;
  std::filesystem::path path_, temporary_;
};

}  // namespace stretto

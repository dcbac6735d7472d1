// A gzip file's content, a block at a time; several members one after the other are one content.
//
//   GzipReader file("texts.jsonl.gz");
//   std::string text;
//   while (file.read(text)) { ... }        // appends up to 256 KiB
#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace stretto {

bool looks_like_gzip(std::string_view content);

class GzipReader {
 public:
  explicit GzipReader(const std::filesystem::path& file);                 // Error: it is no gzip file
  GzipReader(std::string_view bytes, const std::filesystem::path& name);  // which must outlive it
  ~GzipReader();
  GzipReader(GzipReader&&) noexcept;
  bool read(std::string& append_to);  // false: nothing is left. A file that is cut off or damaged is an Error
  std::size_t done() const;           // bytes of the file

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stretto

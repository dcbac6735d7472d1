// A file as read-only bytes in memory; unmapped at the end of its life.
//
//   MappedFile file("weights.safetensors");
//   std::span<const std::byte> bytes = file.bytes();
#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace stretto {

class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const std::filesystem::path& path);  // Error names the path and the reason
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const {
    return {data_, size_};
  }  // an empty file has no bytes, and that is no error
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  const std::filesystem::path& path() const { return path_; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::filesystem::path path_;
};

// For a program's main(): a file that is cut off by somebody else while it is read ends the process with a message that
// names it and exit code 3, not with a bare SIGBUS.
void report_cut_files();

// What the message says to do once the file is back, while this is there; otherwise: --resume.
class CutFileAdvice {
 public:
  explicit CutFileAdvice(std::function<std::string()>);
  ~CutFileAdvice();
  CutFileAdvice(const CutFileAdvice&) = delete;
};

}  // namespace stretto

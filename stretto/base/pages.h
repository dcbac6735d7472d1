// Memory that starts at a large page and may be made of such: kernels miss fewer translations in it.
//
//   std::optional<Pages> arena = Pages::map(bytes);       // of this process alone; none: the system refuses
//   arena->touch();                                       // every page is there from now on: no fault later
//   use(arena->at());                                     // zeros, until the arena goes
#pragma once
#include <cstddef>
#include <optional>
#include <utility>

namespace stretto {

class Pages {
 public:
  static std::optional<Pages> map(std::size_t bytes);                 // zeros
  static std::optional<Pages> map_file(std::size_t bytes, int file);  // what is in it, for whoever maps it too
  // What a file must have for that many bytes.
  static std::size_t whole(std::size_t bytes);

  Pages(Pages&& other) noexcept : at_(std::exchange(other.at_, nullptr)), bytes_(other.bytes_), file_(other.file_) {}
  Pages& operator=(Pages&&) = delete;
  ~Pages();

  // Fills it with zeros: every page is there afterwards.
  void touch();
  std::byte* at() const { return at_; }
  std::size_t bytes() const { return bytes_; }  // whole large pages

 private:
  Pages(std::byte* at, std::size_t bytes, bool file) : at_(at), bytes_(bytes), file_(file) {}
  static std::optional<Pages> map(std::size_t bytes, std::optional<int> file);
  std::byte* at_;
  std::size_t bytes_;
  bool file_;
};

}  // namespace stretto

// One run at a time in a run directory: whoever trains in it holds a lock on its file run.lock, which the system gives
// back when the process ends, however it ends. The file stays.
//
//   const RunLock lock("runs/tales");      // Error: [log.dir] 'runs/tales' is in use by process 4711 on node3 since
//   ...
#pragma once
#include <filesystem>
#include <string_view>
#include <utility>

namespace stretto {

class RunLock {
 public:
  static constexpr std::string_view file_name = "run.lock";

  RunLock() = default;  // holds nothing
  explicit RunLock(const std::filesystem::path& directory);
  ~RunLock();
  RunLock(RunLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  RunLock& operator=(RunLock&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  bool held() const { return file_ >= 0; }

 private:
  int file_ = -1;
};

}  // namespace stretto

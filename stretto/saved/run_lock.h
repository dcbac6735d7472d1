// One run at a time in a run directory: whoever trains in it holds a lock on its file run.lock, which the system gives
// back when the process ends, however it ends. The file stays.
//
//   const RunLock lock("runs/tales");      // Error: [log.dir] 'runs/tales' is in use by process 4711 on node3 since
//   ...
#pragma once
#include <filesystem>
#include <string_view>

#include "stretto/base/fd.h"

namespace stretto {

class RunLock {
 public:
  static constexpr std::string_view file_name = "run.lock";

  RunLock() = default;  // holds nothing
  explicit RunLock(const std::filesystem::path& directory);
  ~RunLock();
  RunLock(RunLock&&) = default;
  RunLock& operator=(RunLock&&) = default;
  bool held() const { return bool(file_); }

 private:
  Fd file_;
};

}  // namespace stretto

// A program that answers lines with lines, as a process of its own. It ends with this object.
//
//   std::optional<LineProcess> cat = LineProcess::start({"cat"});
//   cat->put("a line");
//   std::optional<std::string> same = cat->take();
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stretto/base/fd.h"

namespace stretto {

class LineProcess {
 public:
  // None: there is no such program. A name without a slash is looked for in PATH.
  static std::optional<LineProcess> start(std::vector<std::string> command);
  ~LineProcess();
  LineProcess(LineProcess&& other) noexcept { *this = std::move(other); }
  LineProcess& operator=(LineProcess&&) noexcept;

  // However long the line is: what the program answers meanwhile is kept.
  void put(std::string_view line);
  // Waits for the next answer. None: the program has ended.
  std::optional<std::string> take();

  struct Ending {
    std::optional<int> signal = {};  // that ended it
    std::string last_line = {};      // of what it wrote to its error output
  };
  Ending ending();  // waits for it

 private:
  LineProcess() = default;
  std::optional<std::size_t> exchange(std::string_view send_this);
  void reap(bool kills);

  Fd line_, errors_;
  std::optional<pid_t> process_;  // none: its end is known
  int status_ = 0;
  std::string received_;
  std::size_t taken_ = 0;  // of received_
};

}  // namespace stretto

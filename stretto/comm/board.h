// Where every process of a run says a few words and all get what anybody said. A process waits only when it asks for
// the others' words; having said its own, it may go on with other work.
//
//   board.say(words);                                  // all of them, equally many
//   std::vector<u64> all = board.merged();             // the bits that anybody has, of the newest that was said
//
// Before saying something again, a process has asked for what was said before, or nobody ever will.
#pragma once
#include <span>
#include <vector>

#include "stretto/base/id.h"

namespace stretto {

class Board {
 public:
  virtual ~Board() = default;
  virtual void say(std::span<const u64> words) = 0;
  virtual std::vector<u64> merged() = 0;
};

}  // namespace stretto

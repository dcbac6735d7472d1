// Where every process of a run says a few words and all get what anybody said. Nobody waits before he asks, and whoever
// has said his may go on with other work meanwhile.
//
//   board.say(words);                                  // all of them, equally many
//   std::vector<u64> all = board.merged();             // the bits that anybody has, of the newest that was said
//
// Who says something again has asked for what was said before it, or nobody will.
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

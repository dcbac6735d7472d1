// Several processes that need the same data, of which the first one makes it.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

namespace stretto {

struct FromFirst {
  bool first = false;  // this process makes it
  // Everybody calls it as often; afterwards everybody has the first one's words. No words: there are no more.
  std::function<void(std::vector<std::int32_t>& words)> share;
};

}  // namespace stretto

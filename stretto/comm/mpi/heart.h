// A process's sign of life, in memory that all processes of its node see.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <string>

#include "stretto/base/clock.h"
#include "stretto/base/id.h"
#include "stretto/comm/peers.h"

namespace stretto {

struct Heart {
  std::atomic<double> alive{0};  // the steady clock, the same for all processes of a machine
  std::atomic<i64> step{0};
  std::atomic<std::uint32_t> at{0};
  std::atomic<bool> waiting{false};
  int pid = 0;
};
using Hearts = std::map<int, Heart*>;  // per rank on this node

inline std::optional<Pulse> pulse_of(const Hearts& hearts, int rank) {
  const auto it = hearts.find(rank);
  if (it == hearts.end()) return {};
  const Heart& h = *it->second;
  return Pulse{.step = h.step, .at = h.at, .waiting = h.waiting, .silent = now() - h.alive, .pid = h.pid};
}
inline double longest_silence(const Hearts& hearts) {  // seconds
  double longest = 0;
  for (const auto& [rank, heart] : hearts) longest = std::max(longest, now() - heart->alive);
  return longest;
}
// Who gives no sign of life, as the end of a sentence about waiting.
inline std::string silent_among(const Hearts& hearts) {
  std::string text;
  for (const auto& [rank, heart] : hearts)
    if (const Pulse p = *pulse_of(hearts, rank); p.silent > 1)
      text += fmt::format("; rank {} (process {}) has given no sign of life for {:.1f} s", rank, p.pid, p.silent);
  return text;
}

}  // namespace stretto

#include "stretto/comm/threads/thread_milestones.h"

#include "stretto/base/clock.h"
#include "stretto/comm/stop_flag.h"

namespace stretto {

double ThreadMilestones::wait(int, DeviceLane, int other, std::uint32_t number) {
  Milestone& m = reached_[other].word;
  Milestone::Seen seen = m.look();
  if (seen.reached(number)) return 0;
  const double start = now();
  for (; !seen.reached(number); seen = m.look()) {
    if (seen.stopped()) throw StopFlag::error();
    m.sleep(seen);
  }
  return now() - start;
}

void ThreadMilestones::stop() noexcept {
  for (Rank& r : reached_) r.word.stop();
}

}  // namespace stretto

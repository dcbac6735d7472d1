// How far the processes of one machine are: a word of each in memory that all of them see.
//
//   NodeMilestones all(segments, spins);
#pragma once
#include <vector>

#include "stretto/base/clock.h"
#include "stretto/comm/milestones.h"
#include "stretto/comm/mpi/segments.h"
#include "stretto/comm/mpi/shared_word.h"

namespace stretto {

class NodeMilestones : public Milestones {
 public:
  // Processes of `segments` are numbered as ranks are.
  NodeMilestones(Segments& segments, int spins) : spins_(spins) {
    constexpr std::size_t line = 64;
    std::byte* own = segments.allocate(line);
    STRETTO_ASSERT(own != nullptr);
    const Segments::Address own_at = segments.address_of(own);
    for (int r = 0; r < segments.processes(); ++r)
      reached_.push_back(reinterpret_cast<SharedWord*>(segments.at(own_at, r)));
  }
  void tell(int rank, std::uint32_t number) override { set_shared(*reached_[rank], number & count_mask); }
  double wait(int, DeviceLane, int other, std::uint32_t number) override {
    const auto there = [&](std::uint32_t told) { return ((told - number) & count_mask) <= count_mask / 2; };
    SharedWord& word = *reached_[other];
    if (there(word.load(std::memory_order_acquire) & ~shared_sleeping)) return 0;
    const double start = now();
    wait_shared(word, there, spins_, stopped_);
    return now() - start;
  }
  void stop() noexcept override { stopped_.set(); }

 private:
  static constexpr std::uint32_t count_mask = (1u << 30) - 1;
  int spins_;
  std::vector<SharedWord*> reached_;  // per rank
  StopFlag stopped_;
};

}  // namespace stretto

// How far the ranks of one process are.
//
//   ThreadMilestones all(ranks);
#pragma once
#include <vector>

#include "stretto/comm/milestones.h"
#include "stretto/comm/threads/milestone.h"

namespace stretto {

class ThreadMilestones : public Milestones {
 public:
  explicit ThreadMilestones(int ranks) : reached_(ranks) {}
  void tell(int rank, std::uint32_t number) override { reached_[rank].word.advance(number); }
  double wait(int rank, DeviceLane, int other, std::uint32_t number) override;
  void stop() noexcept override;

 private:
  struct alignas(64) Rank {
    Milestone word;
  };
  std::vector<Rank> reached_;
};

}  // namespace stretto

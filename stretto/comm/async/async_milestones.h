// How far the asynchronous devices of one process are: words that are written in compute lanes, and waits for them that
// are put into others.
//
//   AsyncMilestones all(devices_of_all_ranks);
#pragma once
#include <memory>
#include <vector>

#include "stretto/comm/milestones.h"
#include "stretto/comm/stop_flag.h"
#include "stretto/kernels/async/async_device.h"

namespace stretto {

class AsyncMilestones : public Milestones {
 public:
  explicit AsyncMilestones(std::vector<AsyncDevice*> devices)
      : devices_(std::move(devices)), reached_(std::make_unique<LaneWord[]>(devices_.size())) {}
  void tell(int rank, std::uint32_t number) override {
    devices_[rank]->enqueue(DeviceLane::compute, [word = &reached_[rank], number] { word->advance(number); });
  }
  double wait(int rank, DeviceLane lane, int other, std::uint32_t number) override {
    devices_[rank]->enqueue(
        lane, [this, word = &reached_[other], number] { word->wait_for(number, [this] { stopped_.check(); }); });
    return 0;
  }
  void stop() noexcept override { stopped_.set(); }

 private:
  std::vector<AsyncDevice*> devices_;
  std::unique_ptr<LaneWord[]> reached_;  // per rank
  StopFlag stopped_;
};

}  // namespace stretto

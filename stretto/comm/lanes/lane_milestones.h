// How far the devices of one process are: words that compute lanes count up, and waits for them that are put into other
// lanes.
//
//   LaneMilestones all(devices_of_all_ranks);
#pragma once
#include <memory>
#include <vector>

#include "stretto/comm/milestones.h"
#include "stretto/kernels/lane_device.h"

namespace stretto {

class LaneMilestones : public Milestones {
 public:
  explicit LaneMilestones(std::vector<LaneDevice*> devices)
      : devices_(std::move(devices)), reached_(devices_[0]->words(devices_.size())) {}
  void tell(int rank, std::uint32_t number) override {
    devices_[rank]->advance(DeviceLane::compute, *reached_, std::size_t(rank), number);
  }
  double wait(int rank, DeviceLane lane, int other, std::uint32_t number) override {
    devices_[rank]->wait_for(lane, *reached_, std::size_t(other), number);
    return 0;
  }
  void stop() noexcept override { reached_->stop(); }

 private:
  std::vector<LaneDevice*> devices_;
  std::shared_ptr<LaneWords> reached_;  // per rank
};

}  // namespace stretto

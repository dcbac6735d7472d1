// Collectives between devices of one process whose lanes are not the thread that calls. All collectives of a group are
// in the same lane of each member's device: there the members meet in words, each does its share on everybody's memory,
// and they meet again.
//
//   LaneGroup group({{device, 0}, {other, 1}}, memory, DeviceLane::gradients);    // they reach each other
//   const std::uint32_t sum = group.prepare(shape);
//   group.start(member, sum, in, out);          // complete when the member's lane has come to its end
#pragma once
#include <memory>
#include <vector>

#include "stretto/comm/collective.h"
#include "stretto/comm/lane_memory.h"
#include "stretto/kernels/lane_device.h"

namespace stretto {

struct LaneMember {
  LaneDevice* device = nullptr;
  int rank = 0;  // of the memory
};

class LaneGroup : public CollectiveGroup {
 public:
  LaneGroup(const std::vector<LaneMember>&, const LaneMemory&, DeviceLane);  // the memory must live longer
  std::uint32_t prepare(const CollectiveShape&) override;
  u64 start(int member, std::uint32_t prepared, const void* in, void* out, const void* counts = nullptr) override;
  bool progress(int, u64) override { return false; }
  double wait(int, u64) override { return 0; }  // lanes do, by events
  void stop() noexcept override { came_->stop(); }

 private:
  struct Member {
    LaneMember at;
    u64 started = 0;
    std::uint32_t meeting = 0;          // the newest that was put into its lane
    std::vector<std::byte*> in, out;    // of all members, of the one that is started
    std::vector<KernelId> shares = {};  // per shape
  };
  void meet(int member);
  void find(std::vector<std::byte*>& all, int member, const void* own) const;

  const LaneMemory& memory_;
  DeviceLane lane_;
  std::vector<Member> members_;
  std::vector<CollectiveShape> shapes_;
  std::shared_ptr<LaneWords> came_;  // per member: how many meetings it has come to
};

}  // namespace stretto

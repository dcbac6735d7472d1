// Collectives between asynchronous CPU devices of one process. All collectives of a group are in the same lane of each
// member's device: there the members meet, each does its share on everybody's memory, and they meet again.
//
//   AsyncGroup group(devices_of_its_ranks, DeviceLane::gradients);
//   const std::uint32_t sum = group.prepare(shape);
//   group.start(member, sum, in, out);          // complete when the member's lane has come to its end
#pragma once
#include <memory>
#include <vector>

#include "stretto/comm/collective.h"
#include "stretto/comm/inner/prepared_work.h"
#include "stretto/comm/stop_flag.h"
#include "stretto/kernels/async/async_device.h"

namespace stretto {

class AsyncGroup : public CollectiveGroup {
 public:
  AsyncGroup(const std::vector<AsyncDevice*>& of_members, DeviceLane);
  std::uint32_t prepare(const CollectiveShape& s) override { return prepared_.add(s); }
  u64 start(int member, std::uint32_t prepared, const void* in, void* out, const void* counts = nullptr) override;
  bool progress(int, u64) override { return false; }
  double wait(int, u64) override { return 0; }  // lanes do, by events
  void stop() noexcept override { stopped_.set(); }

 private:
  struct Member {
    AsyncDevice* device = nullptr;
    u64 started = 0;            // the host's
    std::uint32_t meeting = 0;  // its lane's: the newest it has come to
    LaneWord came;              // the same, for the others
  };
  struct Given {
    const std::byte* in;
    std::byte* out;
    const std::int32_t* counts;
  };
  void run(int member, const CollectiveWork&, const Given&);  // in its lane
  void meet(Member&);

  std::vector<Member> members_;
  DeviceLane lane_;
  PreparedWork prepared_;
  std::vector<const std::byte*> in_;  // per member, of the one that is under way
  std::vector<std::byte*> out_;
  StopFlag stopped_;
};

}  // namespace stretto

#include "stretto/comm/lanes/lane_group.h"
#include "stretto/comm/lanes/lane_milestones.h"
#include "stretto/comm/lanes/lane_transport.h"
#include "stretto/comm/wiring.h"

namespace stretto {
namespace {

class LaneWiring : public Wiring {
 public:
  LaneWiring(std::vector<LaneDevice*> devices, LaneMemory memory)
      : devices_(std::move(devices)), memory_(std::move(memory)) {
    // All do: what an actor's ranks add up may lie in the memory of another actor's.
    for (LaneDevice* d : devices_)
      for (LaneDevice* other : devices_)
        if (other != d) d->reach(*other);
  }

  std::unique_ptr<Transport> transport(const Program& p, std::span<const ArenaBases> arenas, int coordinate) override {
    IdVector<ActorId, LaneDevice*> of_actors;
    for (ActorId a : p.actors.ids()) of_actors.push_back(devices_[p.rank_of(a, coordinate)]);
    return std::make_unique<LaneTransport>(p, arenas, of_actors);
  }
  std::unique_ptr<CollectiveGroup> group(const std::vector<int>& ranks, int member, int under_way) override {
    return group_in(DeviceLane::compute, ranks, member, under_way);
  }
  std::unique_ptr<CollectiveGroup> group_in(DeviceLane lane, const std::vector<int>& ranks, int, int) override {
    std::vector<LaneMember> members;
    for (const int rank : ranks) members.push_back({devices_[rank], rank});
    return std::make_unique<LaneGroup>(members, memory_, lane);
  }
  std::unique_ptr<Milestones> milestones(int) override { return std::make_unique<LaneMilestones>(devices_); }
  Notes notes(const Program&, int) override { throw late(); }
  GroupWithMemory group_with_memory(const std::vector<int>&, int, int, u64) override { throw late(); }

 private:
  static Error late() {
    return Error("wiring", "messages between devices with lanes cannot be made late").as(Error::Kind::bug);
  }
  std::vector<LaneDevice*> devices_;
  const LaneMemory memory_;
};

}  // namespace

std::unique_ptr<Wiring> lane_wiring(std::vector<LaneDevice*> devices, LaneMemory memory) {
  return std::make_unique<LaneWiring>(std::move(devices), std::move(memory));
}

}  // namespace stretto

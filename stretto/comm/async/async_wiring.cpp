#include "stretto/comm/async/async_group.h"
#include "stretto/comm/async/async_milestones.h"
#include "stretto/comm/async/async_transport.h"
#include "stretto/comm/wiring.h"

namespace stretto {
namespace {

class AsyncWiring : public Wiring {
 public:
  explicit AsyncWiring(std::vector<AsyncDevice*> devices) : devices_(std::move(devices)) {}

  std::unique_ptr<Transport> transport(const Program& p, std::span<const ArenaBases> arenas, int coordinate) override {
    IdVector<ActorId, AsyncDevice*> of_actors;
    for (ActorId a : p.actors.ids()) of_actors.push_back(devices_[p.rank_of(a, coordinate)]);
    return std::make_unique<AsyncTransport>(p, arenas, of_actors);
  }
  std::unique_ptr<CollectiveGroup> group(const std::vector<int>& ranks, int member, int under_way) override {
    return group_in(DeviceLane::compute, ranks, member, under_way);
  }
  std::unique_ptr<CollectiveGroup> group_in(DeviceLane lane, const std::vector<int>& ranks, int, int) override {
    std::vector<AsyncDevice*> members;
    for (const int rank : ranks) members.push_back(devices_[rank]);
    return std::make_unique<AsyncGroup>(members, lane);
  }
  std::unique_ptr<Milestones> milestones(int) override { return std::make_unique<AsyncMilestones>(devices_); }
  Notes notes(const Program&, int) override { throw late(); }
  GroupWithMemory group_with_memory(const std::vector<int>&, int, int, u64) override { throw late(); }

 private:
  static Error late() {
    return Error("wiring", "messages between asynchronous devices cannot be made late").as(Error::Kind::bug);
  }
  std::vector<AsyncDevice*> devices_;
};

}  // namespace

std::unique_ptr<Wiring> async_wiring(std::vector<AsyncDevice*> devices) {
  return std::make_unique<AsyncWiring>(std::move(devices));
}

}  // namespace stretto

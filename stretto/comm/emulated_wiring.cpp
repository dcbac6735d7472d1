#include "stretto/comm/inner/emulated_group.h"
#include "stretto/comm/inner/emulated_transport.h"
#include "stretto/comm/wiring.h"

namespace stretto {
namespace {

class EmulatedWiring : public Wiring {
 public:
  EmulatedWiring(std::unique_ptr<Wiring> real, const Emulation& e) : real_(std::move(real)), emulation_(e) {}

  std::unique_ptr<Transport> transport(const Program& p, std::span<const ArenaBases> arenas, int coordinate) override {
    std::unique_ptr<Transport> content;
    if (emulation_.content) content = real_->transport(p, arenas, coordinate);
    return emulated_transport(p, emulation_.links, coordinate, std::move(content), notes(p, coordinate));
  }
  std::unique_ptr<CollectiveGroup> group(const std::vector<int>& ranks, int member, int under_way) override {
    std::unique_ptr<CollectiveGroup> content;
    if (emulation_.content) content = real_->group(ranks, member, under_way);
    return emulated_group(emulation_.links, ranks, under_way, std::move(content),
                          group_with_memory(ranks, member, under_way, bytes_of_starts(ranks.size(), under_way)));
  }

  Notes notes(const Program& p, int coordinate) override { return real_->notes(p, coordinate); }
  GroupWithMemory group_with_memory(const std::vector<int>& ranks, int member, int under_way, u64 bytes) override {
    return real_->group_with_memory(ranks, member, under_way, bytes);
  }
  std::unique_ptr<Milestones> milestones(int ranks) override { return real_->milestones(ranks); }

 private:
  std::unique_ptr<Wiring> real_;
  Emulation emulation_;
};

}  // namespace

std::unique_ptr<Wiring> emulated_wiring(std::unique_ptr<Wiring> real, const Emulation& e) {
  return std::make_unique<EmulatedWiring>(std::move(real), e);
}

}  // namespace stretto

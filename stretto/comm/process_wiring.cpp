#include "stretto/comm/inner/notes.h"
#include "stretto/comm/peers.h"
#include "stretto/comm/wiring.h"

namespace stretto {
namespace {

class ProcessWiring : public Wiring {
 public:
  explicit ProcessWiring(Peers& peers) : peers_(peers) {}

  std::unique_ptr<Transport> transport(const Program& p, std::span<const ArenaBases> arenas, int) override {
    return peers_.transport(p, arenas);
  }
  Notes notes(const Program& p, int coordinate) override {
    auto memory = std::make_shared<std::vector<double>>();
    const Program program = notes_of(p);
    std::vector<ArenaBases> arenas;
    if (peers_.shares_memory()) {
      arenas = peers_.share(program, true);
    } else {
      memory->resize(p.transfers.size());
      arenas.emplace_back()[Arena::activations] = reinterpret_cast<std::byte*>(memory->data());
    }
    const ArenaBases& own = arenas.size() == 1 ? arenas[0] : arenas[peers_.rank()];
    Notes notes{transport(program, arenas, coordinate), std::vector<double*>(p.actors.size()), std::move(memory)};
    notes.of_actor[peers_.rank() / p.ranks_per_actor()] = reinterpret_cast<double*>(own[Arena::activations]);
    return notes;
  }
  std::unique_ptr<CollectiveGroup> group(const std::vector<int>& ranks, int member, int under_way) override {
    return peers_.group(ranks, member, under_way);
  }
  GroupWithMemory group_with_memory(const std::vector<int>& ranks, int member, int under_way, u64 bytes) override {
    return peers_.group_with_memory(ranks, member, under_way, bytes);
  }
  std::unique_ptr<Milestones> milestones(int) override { return peers_.milestones(); }

 private:
  Peers& peers_;
};

}  // namespace

std::unique_ptr<Wiring> process_wiring(Peers& peers) { return std::make_unique<ProcessWiring>(peers); }

}  // namespace stretto

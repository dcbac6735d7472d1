#include "stretto/comm/inner/notes.h"
#include "stretto/comm/threads/thread_group.h"
#include "stretto/comm/threads/thread_milestones.h"
#include "stretto/comm/threads/thread_transport.h"
#include "stretto/comm/wiring.h"

namespace stretto {
namespace {

class ThreadWiring : public Wiring {
 public:
  explicit ThreadWiring(int spins) : spins_(spins) {}

  std::unique_ptr<Transport> transport(const Program& p, std::span<const ArenaBases> arenas, int) override {
    return std::make_unique<ThreadTransport>(p, arenas, spins_);
  }
  Notes notes(const Program& p, int coordinate) override {
    auto memory = std::make_shared<std::vector<std::vector<double>>>();
    Notes notes;
    std::vector<ArenaBases> arenas;
    for (std::size_t a = 0; a < p.actors.size(); ++a) {
      notes.of_actor.push_back(memory->emplace_back(p.transfers.size()).data());
      arenas.emplace_back()[Arena::activations] = reinterpret_cast<std::byte*>(notes.of_actor.back());
    }
    notes.transport = transport(notes_of(p), arenas, coordinate);
    notes.memory = std::move(memory);
    return notes;
  }
  std::unique_ptr<CollectiveGroup> group(const std::vector<int>& ranks, int, int under_way) override {
    return std::make_unique<ThreadGroup>(ranks.size(), GroupOptions{.under_way = under_way, .spins = spins_});
  }
  GroupWithMemory group_with_memory(const std::vector<int>& ranks, int member, int under_way, u64 bytes) override {
    auto memory = std::make_shared<std::vector<std::byte>>(bytes);
    return {group(ranks, member, under_way), memory->data(), memory};
  }
  std::unique_ptr<Milestones> milestones(int ranks) override { return std::make_unique<ThreadMilestones>(ranks); }

 private:
  int spins_;
};

}  // namespace

std::unique_ptr<Wiring> thread_wiring(int spins) { return std::make_unique<ThreadWiring>(spins); }

}  // namespace stretto

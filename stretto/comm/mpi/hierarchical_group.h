// Collectives between ranks on several nodes, the same number of them on each. An all_reduce is a reduce_scatter in
// every node, through the memory its ranks share, an all_reduce of each rank's share with the ranks at its place in
// other nodes, by messages, and an all_gather in every node. So every byte of a sum crosses between two nodes once each
// way, whatever the number of ranks in them. The same for reduce_scatter and all_gather.
//
//   if (is_hierarchy(nodes_of_members)) HierarchicalGroup group(std::move(wires), member, 8, 4, under_way, spins);
//
// Sums keep the one order of addition: they go this way only where every node's members are a subtree of the tree over
// all members (comm/inner/hierarchy.h). What cannot go this way goes by messages between all members.
#pragma once
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "stretto/comm/collective.h"
#include "stretto/comm/inner/hierarchy.h"
#include "stretto/comm/mpi/node_group.h"

namespace stretto {

// What a HierarchicalGroup is made of.
struct HierarchyWires {
  const Segments* arenas = nullptr;               // of the members of this node
  std::unique_ptr<Segments> staging;              // between them, in their order
  std::unique_ptr<Segments> before, after;        // the same again: control of the two node groups
  std::unique_ptr<CollectiveGroup> across, flat;  // by messages: with members at this place in other nodes; all
};

class HierarchicalGroup : public CollectiveGroup {
 public:
  HierarchicalGroup(HierarchyWires, int member, int members, int per_node, int under_way, int spins);
  std::uint32_t prepare(const CollectiveShape&) override;
  u64 start(int member, std::uint32_t prepared, const void* in, void* out, const void* counts = nullptr) override;
  bool progress(int member, u64 ticket) override;
  double wait(int member, u64 ticket) override;
  void stop() noexcept override;

  static constexpr int slots = 4;  // collectives that have staging memory at the same time

 private:
  struct Prepared {
    CollectiveShape asked;
    bool flat = false;
    std::uint32_t across = 0;                           // of the group across nodes, or of the flat one
    std::vector<std::uint32_t> before, after;           // per node, or one
    i64 in_block = 0, staged_block = 0, out_block = 0;  // bytes from one node's to the next one's
  };
  enum class Stage { queued, before, across, after, complete };
  struct Place {
    bool open = false;
    const Prepared* what = nullptr;
    const std::byte* in = nullptr;
    std::byte* out = nullptr;
    u64 flat = 0;   // ticket
    u64 order = 0;  // among those that are not flat
    Stage stage = Stage::queued;
    u64 across = 0;                  // ticket
    std::vector<u64> before, after;  // tickets
  };
  Place& place(u64 ticket) { return places_[ticket % places_.size()]; }
  Place*& ordered(u64 order) { return in_order_[order % places_.size()]; }
  std::byte* staged(const Place& p) const { return staging_ + (p.order % slots) * staging_bytes_; }
  void plan(Prepared&);
  void plan_reduce(Prepared&, const CollectiveShape&);
  void plan_scatter(Prepared&, const CollectiveShape&);
  void plan_gather(Prepared&, const CollectiveShape&);
  CollectiveShape in_node(const CollectiveShape&, int node) const;
  void reserve(u64 bytes);
  void advance(NodeGroup::Eagerness);
  void step(Place&, NodeGroup::Eagerness);
  bool ended(const Place&);

  HierarchyWires wires_;
  NodeGroup before_, after_;
  int member_, members_, per_node_, nodes_, spins_;
  bool subtrees_;
  std::vector<Place> places_;
  std::vector<Place*> in_order_;
  std::deque<Prepared> prepared_;
  std::byte* staging_ = nullptr;  // slots
  u64 staging_bytes_ = 0;         // of one
  u64 next_ = 0;                  // ticket
  std::optional<u64> last_flat_;  // the newest ticket of the flat group that is under way
  // Of those that are not flat: how many were started, how many began each part, how many of the first are complete.
  u64 started_ = 0, began_before_ = 0, began_across_ = 0, began_after_ = 0, complete_ = 0;
  StopFlag stopped_;
};

}  // namespace stretto

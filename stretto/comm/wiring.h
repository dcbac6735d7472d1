// What connects ranks: it makes the transports and groups of a run. There is one between threads, one between processes
// and one between devices with lanes. A fourth goes around any of them and makes everything as late as it would be
// over the links of a cluster that is not there.
//
//   std::unique_ptr<Wiring> wires = thread_wiring(500);
//   wires = emulated_wiring(std::move(wires), {.links = equal_links(Link{1e-5, 1e9})});
//   std::unique_ptr<Transport> transport = wires->transport(program, arenas, coordinate);
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "stretto/comm/collective.h"
#include "stretto/comm/lane_memory.h"
#include "stretto/comm/milestones.h"
#include "stretto/comm/transport.h"
#include "stretto/cost/machine.h"
#include "stretto/ir/lane.h"

namespace stretto {

class LaneDevice;
class Peers;

// A number that goes along with every message of a program: a transport and the memory that it moves them from and to.
struct Notes {
  std::unique_ptr<Transport> transport;
  std::vector<double*> of_actor;  // per actor, one number per transfer; null for actors of other processes
  std::shared_ptr<void> memory;   // what keeps it
};

// A group with memory of its own, in which all its operands and results lie.
struct GroupWithMemory {
  std::unique_ptr<CollectiveGroup> group;
  std::byte* at = nullptr;
  std::shared_ptr<void> memory = {};  // what keeps it, unless the group does
};

class Wiring {
 public:
  virtual ~Wiring() = default;
  // Messages between the ranks of one coordinate. `arenas`: between threads those of all its actors; between processes
  // those of all ranks, or of this one alone in a program for ranks that share no memory.
  virtual std::unique_ptr<Transport> transport(const Program&, std::span<const ArenaBases> arenas, int coordinate) = 0;
  virtual Notes notes(const Program&, int coordinate) = 0;
  // Collectives between some ranks, of which this is the `member`-th, or in one process all of them are here.
  // `under_way`: that a member may have started and not waited for.
  virtual std::unique_ptr<CollectiveGroup> group(const std::vector<int>& ranks, int member, int under_way) = 0;
  // For devices whose lanes are not the thread that calls: the group's collectives are all in one lane.
  virtual std::unique_ptr<CollectiveGroup> group_in(DeviceLane, const std::vector<int>& ranks, int member,
                                                    int under_way) {
    return group(ranks, member, under_way);
  }
  virtual GroupWithMemory group_with_memory(const std::vector<int>& ranks, int member, int under_way, u64 bytes) = 0;
  // How far all ranks are. None: no rank writes into another's memory.
  virtual std::unique_ptr<Milestones> milestones(int ranks) = 0;
};

std::unique_ptr<Wiring> thread_wiring(int spins);  // looks before sleeping
std::unique_ptr<Wiring> lane_wiring(std::vector<LaneDevice*> of_all_ranks, LaneMemory);
std::unique_ptr<Wiring> process_wiring(Peers& peers);  // which must live longer

// Messages and collectives are as late as between the ranks of a cluster.
struct Emulation {
  Cluster links = {};   // by default everything arrives at once
  bool content = true;  // false: nothing is moved; for emulated devices, which have no memory
};
std::unique_ptr<Wiring> emulated_wiring(std::unique_ptr<Wiring> real, const Emulation&);

}  // namespace stretto

// Collectives between processes of one machine whose operands and results all of them reach: as between threads. When
// the last member has started one, everybody who has nothing else to do takes chunks of it.
//
//   NodeGroup group({&segments}, control, 1);          // this is the second of the processes of `control`
//   group.wait(1, group.start(1, group.prepare(shape), in, out));
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "stretto/comm/collective.h"
#include "stretto/comm/collective_work.h"
#include "stretto/comm/emulated_link.h"
#include "stretto/comm/mpi/segments.h"
#include "stretto/comm/mpi/shared_word.h"
#include "stretto/cost/machine.h"

namespace stretto {

struct NodeGroupOptions {
  std::optional<Link> link = {};  // complete as late as a ring over such links would be; one collective at a time
  bool copy = true;               // false: announced only; for emulated devices, which have no memory
  int under_way = 16;             // collectives that a member may have started and not waited for
  int spins = 0;                  // looks before sleeping
};

class NodeGroup : public CollectiveGroup {
 public:
  // Operands and results lie in any of `memory`; `control` is between the members alone, in their order.
  NodeGroup(std::vector<const Segments*> memory, std::unique_ptr<Segments> control, int member, NodeGroupOptions = {});
  std::uint32_t prepare(const CollectiveShape&) override;
  u64 start(int member, std::uint32_t prepared, const void* in, void* out) override;
  bool progress(int, u64 ticket) override { return advance(ticket, false); }
  bool advance(u64 ticket, bool everything);  // does all that can be done, or a fair share of it: is it complete?
  double wait(int member, u64 ticket) override;
  void stop() noexcept override { stopped_ = true; }

 private:
  struct Prepared {
    CollectiveShape asked;
    CollectiveWork work;
    double seconds = 0;  // emulated links
  };
  struct Spot {
    std::uint32_t memory = 0;  // which of them
    Segments::Place place;
  };
  struct Given {  // by one member, for one ticket
    Spot in, out;
    std::uint32_t prepared = 0;
  };
  // In memory of the first member. As in a ThreadGroup: tickets t, t + under_way, ... share a place, and a member
  // starts the next of them only when it has seen the end of the one before.
  struct Place {
    alignas(64) SharedWord phase;  // two steps per ticket: all have started; complete
    SharedWord started;
    double due;         // emulated links
    EmulatedLink link;  // of the first place only: who starts last looks, and all have started the one before by then
    alignas(64) std::atomic<std::uint32_t> next;  // the first chunk that nobody has taken
    alignas(64) std::atomic<std::uint32_t> left;  // chunks that are not done
  };
  struct Mine {    // of this process, per place
    u64 open = 0;  // ticket + 1, or 0
    bool seen = false;
    std::uint32_t taken = 0;
    std::vector<const std::byte*> in;  // as this process sees them
    std::vector<std::byte*> out;
  };
  Place& place(u64 ticket) const;
  Given* given(u64 ticket) const;
  std::uint32_t all_started(u64 ticket) const { return std::uint32_t(ticket / places_ * 2 + 1) & mask; }
  std::uint32_t complete(u64 ticket) const { return (all_started(ticket) + 1) & mask; }
  static bool reached(std::uint32_t phase, std::uint32_t wanted) { return ((phase - wanted) & mask) <= mask / 2; }
  Spot spot_of(const void*) const;
  std::byte* at(const Spot& s) const { return memory_[s.memory]->at(s.place); }
  const CollectiveWork& look(u64 ticket);  // resolves addresses, once
  bool take_chunks(u64 ticket, std::uint32_t at_most);
  void check_stopped() const;

  static constexpr std::uint32_t mask = (1u << 30) - 1;
  std::vector<const Segments*> memory_;
  std::unique_ptr<Segments> control_;
  std::size_t members_;
  int member_;
  NodeGroupOptions options_;
  std::size_t places_, stride_ = 0;
  std::byte* base_ = nullptr;
  std::vector<Mine> mine_;
  std::vector<std::unique_ptr<const Prepared>> prepared_;
  u64 next_ = 0;  // ticket
  std::atomic<bool> stopped_{false};
};

}  // namespace stretto

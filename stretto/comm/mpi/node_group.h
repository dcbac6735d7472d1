// Collectives between processes of one machine whose operands and results all of them reach: as between threads. When
// the last member has started one, everybody who has nothing else to do takes chunks of it.
//
//   NodeGroup group(segments, control, {0, 2}, 1);          // this is rank 2, the second member
//   group.wait(1, group.start(1, group.prepare(shape), in, out));
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "stretto/comm/collective.h"
#include "stretto/comm/collective_work.h"
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
  // `memory` is what operands and results lie in; `control` is between the members alone, in their order.
  NodeGroup(const Segments& memory, std::unique_ptr<Segments> control, std::vector<int> processes, int member,
            NodeGroupOptions = {});
  std::uint32_t prepare(const CollectiveShape&) override;
  u64 start(int member, std::uint32_t prepared, const void* in, void* out) override;
  bool progress(int member, u64 ticket) override;
  double wait(int member, u64 ticket) override;
  void stop() noexcept override { stopped_ = true; }

 private:
  struct Prepared {
    CollectiveShape asked;
    CollectiveWork work;
    double seconds = 0;  // emulated links
  };
  struct Given {  // by one member, for one ticket
    Segments::Place in, out;
    std::uint32_t prepared = 0;
  };
  // In memory of the first member. As in a ThreadGroup: tickets t, t + under_way, ... share a place, and a member
  // starts the next of them only when it has seen the end of the one before.
  struct Place {
    alignas(64) SharedWord phase;  // two steps per ticket: all have started; complete
    SharedWord started;
    double due;        // emulated links
    double link_free;  // of the first place only: who starts last looks, and all have started the one before by then
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
  const CollectiveWork& look(u64 ticket);  // resolves addresses, once
  bool take_chunks(u64 ticket, std::uint32_t at_most);
  void check_stopped() const;

  static constexpr std::uint32_t mask = (1u << 30) - 1;
  const Segments& memory_;
  std::unique_ptr<Segments> control_;
  std::vector<int> processes_;
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

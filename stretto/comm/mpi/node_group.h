// Collectives between processes of one machine whose operands and results all of them reach: as between threads. When
// the last member has started one, everybody who has nothing else to do takes chunks of it.
//
//   NodeGroup group({&segments}, std::move(control), 1);          // this is the second of the processes of `control`
//   group.wait(1, group.start(1, group.prepare(shape), in, out));
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "stretto/comm/collective.h"
#include "stretto/comm/mpi/segments.h"
#include "stretto/comm/mpi/shared_word.h"
#include "stretto/comm/inner/prepared_work.h"

namespace stretto {

class NodeGroup : public CollectiveGroup {
 public:
  // Operands and results lie in any of `memory`; `control` is between the members alone, in their order.
  NodeGroup(std::vector<const Segments*> memory, std::unique_ptr<Segments> control, int member, GroupOptions = {});
  std::uint32_t prepare(const CollectiveShape& s) override { return prepared_.add(s); }
  u64 start(int member, std::uint32_t prepared, const void* in, void* out, const void* counts = nullptr) override;
  bool progress(int, u64 ticket) override { return advance(ticket, Eagerness::fair_share); }
  enum class Eagerness { fair_share, all_there_is };
  bool advance(u64 ticket, Eagerness);  // does what can be done: is it complete?
  double wait(int member, u64 ticket) override;
  void stop() noexcept override { stopped_.set(); }

 private:
  struct Spot {
    std::uint32_t memory = 0;  // which of them
    Segments::Address address;
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
    alignas(64) std::atomic<std::uint32_t> next;  // the first chunk that nobody has taken
    alignas(64) std::atomic<std::uint32_t> left;  // chunks that are not done
  };
  struct Mine {               // of this process, per place
    std::optional<u64> open;  // the ticket that is under way
    bool seen = false;
    std::uint32_t taken = 0;
    std::vector<const std::byte*> in;  // as this process sees them
    std::vector<std::byte*> out;
    const std::int32_t* counts = nullptr;  // its own: all are equal
  };
  Mine& mine(u64 ticket) { return mine_[ticket % places_]; }
  Place& place(u64 ticket) const;
  Given* given(u64 ticket) const;
  std::uint32_t all_started(u64 ticket) const { return (ticket / places_ * 2 + 1) & mask; }
  std::uint32_t complete(u64 ticket) const { return (all_started(ticket) + 1) & mask; }
  static bool reached(std::uint32_t phase, std::uint32_t wanted) { return ((phase - wanted) & mask) <= mask / 2; }
  void begin(u64 ticket, std::uint32_t prepared);  // by the last to start
  Spot spot_of(const void*) const;
  std::byte* at(const Spot& s) const { return memory_[s.memory]->at(s.address); }
  const CollectiveWork& look(u64 ticket);  // resolves addresses, once
  bool take_chunks(u64 ticket, std::uint32_t at_most);

  static constexpr std::uint32_t mask = (1u << 30) - 1;
  std::vector<const Segments*> memory_;
  std::unique_ptr<Segments> control_;
  std::size_t members_;
  int member_;
  GroupOptions options_;
  std::size_t places_, stride_ = 0;
  std::byte* base_ = nullptr;
  std::vector<Mine> mine_;
  PreparedWork prepared_;
  u64 next_ = 0;  // ticket
  StopFlag stopped_;
};

}  // namespace stretto

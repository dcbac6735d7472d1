// Collectives between threads of one process. When the last member has started one, everybody who has nothing else to
// do takes chunks of it: it reads all operands and writes into all results, so that there is one meeting per collective
// and nothing is staged. A waiting thread helps, then sleeps; small ones are done by the last to start, on the spot.
//
//   ThreadGroup group(4);
//   const std::uint32_t sum = group.prepare(shape);
//   // on the thread of member m, in every round:
//   group.wait(m, group.start(m, sum, in, out));
#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "stretto/comm/collective.h"
#include "stretto/comm/inner/prepared_work.h"
#include "stretto/comm/stop_flag.h"
#include "stretto/comm/threads/milestone.h"

namespace stretto {

class ThreadGroup : public CollectiveGroup {
 public:
  explicit ThreadGroup(int members, GroupOptions = {});
  std::uint32_t prepare(const CollectiveShape& s) override { return prepared_.add(s); }
  u64 start(int member, std::uint32_t prepared, const void* in, void* out, const void* counts = nullptr) override;
  bool progress(int member, u64 ticket) override;
  double wait(int member, u64 ticket) override;
  void stop() noexcept override;
  int members() const { return members_.size(); }
  const CollectiveShape& shape(std::uint32_t prepared) const { return prepared_.shape(prepared); }

 private:
  // Where the tickets t, t + under_way, t + 2 under_way, ... take place. A member starts the next of them only when it
  // has seen the end of the one before, so whatever is written for the next disturbs nobody who is still busy with it.
  struct alignas(64) Place {
    Milestone reached;  // two steps per ticket: all have started; complete
    std::atomic<std::uint32_t> started{0};
    const CollectiveWork* work = nullptr;
    std::vector<const std::byte*> in;  // per member
    std::vector<std::byte*> out;
    std::vector<std::uint32_t> prepared;
    const std::int32_t* counts = nullptr;            // the last member's to start: all are equal
    alignas(64) std::atomic<std::uint32_t> next{0};  // the first chunk that nobody has taken
    alignas(64) std::atomic<std::uint32_t> left{0};  // chunks that are not done
  };
  struct Mine {
    std::optional<u64> open;  // the ticket that is under way
    std::uint32_t taken = 0;  // chunks
  };
  struct alignas(64) Member {  // touched by its own thread only
    u64 next = 0;              // ticket
    std::vector<Mine> places;
    Mine& place(u64 ticket) { return places[ticket % places.size()]; }
  };
  Place& place(u64 ticket) { return places_[ticket % places_count_]; }
  std::uint32_t all_started(u64 ticket) const { return ticket / places_count_ * 2 + 1; }
  std::uint32_t complete(u64 ticket) const { return all_started(ticket) + 1; }
  void begin(Place&, u64 ticket);  // by the last to start
  bool take_chunks(Place&, u64 ticket, std::uint32_t& taken, std::uint32_t at_most);

  GroupOptions options_;
  std::vector<Member> members_;
  PreparedWork prepared_;
  u64 places_count_ = 1;
  std::unique_ptr<Place[]> places_;
  StopFlag stopped_;
};

}  // namespace stretto

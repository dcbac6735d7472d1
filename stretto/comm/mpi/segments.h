// Memory that the processes of one machine share. Every process makes the same allocations in the same order; each has
// memory of its own and sees that of all others, at other addresses.
//
//   Segments segments(communicator_of_the_machine);
//   std::byte* own = segments.allocate(1 << 20);
//   std::byte* same_place_at_2 = segments.at(segments.address_of(own), 2);
//
// The memory has no name in the file system, so it is gone when the processes are, however they end.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "stretto/base/id.h"
#include "stretto/base/pages.h"

namespace stretto {

class Segments {
 public:
  explicit Segments(int communicator);  // Fortran handle
  Segments(const Segments&) = delete;

  // Zeroed and touched. Null, in all processes, when one of them cannot reach another's memory.
  std::byte* allocate(u64 bytes);
  int failed() const { return failed_; }  // the first process that could not

  struct Address {  // the same for all processes
    std::uint32_t segment = 0;
    int process = 0;  // whose memory it is
    u64 offset = 0;
  };
  Address address_of(const void*) const;           // of memory as this process sees it
  std::optional<Address> find(const void*) const;  // none: it lies elsewhere
  std::byte* at(Address a) const { return at(a, a.process); }
  std::byte* at(Address a, int process) const { return segments_[a.segment][process]->at() + a.offset; }
  int processes() const { return processes_; }

 private:
  using Segment = std::vector<std::optional<Pages>>;  // per process; none: out of reach
  int communicator_, own_ = 0, processes_ = 0, failed_ = 0;
  std::vector<Segment> segments_;
};

}  // namespace stretto

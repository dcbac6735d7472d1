#include "stretto/comm/mpi/segments.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <mpi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "stretto/base/error.h"
#include "stretto/base/pages.h"

namespace stretto {
namespace {

#ifndef MADV_COLLAPSE
constexpr int MADV_COLLAPSE = 25;
#endif

// Every page is there afterwards: no fault later. Systems seldom give shared memory large pages unless asked for each
// of them, when something is in it; small ones make kernels a few percent slower. Older systems refuse: nothing is
// lost.
void touch(std::byte* at, u64 bytes) {
  for (u64 i = 0; i < bytes; i += kLargePage) at[i] = std::byte{0};
  madvise(at, bytes, MADV_COLLAPSE);
  std::memset(at, 0, bytes);
}

struct Told {
  u64 bytes = 0;
  std::int64_t pid = 0, fd = -1;
};

}  // namespace

Segments::Segments(int communicator) : communicator_(communicator) {
  const MPI_Comm comm = MPI_Comm_f2c(communicator_);
  MPI_Comm_rank(comm, &own_);
  MPI_Comm_size(comm, &processes_);
}

Segments::~Segments() {
  for (const Segment& s : segments_)
    for (std::size_t p = 0; p < s.base.size(); ++p)
      if (s.base[p]) munmap(s.base[p], s.bytes[p]);
}

std::byte* Segments::allocate(u64 bytes) {
  bytes = whole_pages(std::max<u64>(1, bytes));
  const int fd = memfd_create("stretto", MFD_CLOEXEC);
  const bool made = fd >= 0 && ftruncate(fd, bytes) == 0;
  std::byte* own = made ? map_pages(bytes, fd) : nullptr;
  const Told mine{own ? bytes : 0, getpid(), fd};
  std::vector<Told> all(processes_);
  const MPI_Comm comm = MPI_Comm_f2c(communicator_);
  MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, comm);
  Segment s;
  bool reached = own != nullptr;
  for (int p = 0; p < processes_; ++p) {
    const Told& t = all[p];
    s.bytes.push_back(t.bytes);
    s.base.push_back(p == own_ ? own : nullptr);
    if (p == own_ || t.bytes == 0) continue;
    const int other = open(fmt::format("/proc/{}/fd/{}", t.pid, t.fd).c_str(), O_RDWR | O_CLOEXEC);
    if (other >= 0) s.base.back() = map_pages(t.bytes, other);
    if (other >= 0) close(other);
    reached = reached && s.base.back();
  }
  if (own) touch(own, bytes);
  const int failed = reached ? processes_ : own_;
  MPI_Allreduce(&failed, &failed_, 1, MPI_INT, MPI_MIN, comm);  // also: nobody closes before all have opened
  if (fd >= 0) close(fd);
  segments_.push_back(std::move(s));
  return failed_ == processes_ ? own : nullptr;
}

std::optional<Segments::Place> Segments::find(const void* address) const {
  const auto* at = static_cast<const std::byte*>(address);
  const auto in_memory_of = [&](int p) -> std::optional<Place> {
    for (std::uint32_t i = 0; i < segments_.size(); ++i) {
      const std::byte* base = segments_[i].base[p];
      if (!base || at < base || at >= base + segments_[i].bytes[p]) continue;
      const u64 offset = at - base;
      return Place{i, p, offset};
    }
    return {};
  };
  if (const auto own = in_memory_of(own_)) return own;
  for (int p = 0; p < processes_; ++p)  // what is made where it is needed next
    if (const auto other = in_memory_of(p)) return other;
  return {};
}

Segments::Place Segments::place_of(const void* address) const {
  if (const std::optional<Place> p = find(address)) return *p;
  throw Error("mpi", "memory that no other process can reach").as(Error::Kind::bug);
}

}  // namespace stretto

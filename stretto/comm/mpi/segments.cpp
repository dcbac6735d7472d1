#include "stretto/comm/mpi/segments.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <mpi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "stretto/base/error.h"
#include "stretto/base/fd.h"
#include "stretto/base/pages.h"

namespace stretto {
namespace {

struct Told {
  u64 bytes = 0;
  std::int64_t pid = 0, fd = 0;
};

// Another process's memory.
std::optional<Pages> reach(const Told& t) {
  if (t.bytes == 0) return {};
  const Fd file(open(fmt::format("/proc/{}/fd/{}", t.pid, t.fd).c_str(), O_RDWR | O_CLOEXEC));
  return file ? Pages::map_file(t.bytes, file.get()) : std::nullopt;
}

}  // namespace

Segments::Segments(int communicator) : communicator_(communicator) {
  const MPI_Comm comm = MPI_Comm_f2c(communicator_);
  MPI_Comm_rank(comm, &own_);
  MPI_Comm_size(comm, &processes_);
}

std::byte* Segments::allocate(u64 bytes) {
  bytes = Pages::whole(std::max<u64>(1, bytes));
  const Fd file(memfd_create("stretto", MFD_CLOEXEC));
  std::optional<Pages> own =
      file && ftruncate(file.get(), bytes) == 0 ? Pages::map_file(bytes, file.get()) : std::nullopt;
  const Told mine{own ? bytes : 0, getpid(), file.get()};
  std::vector<Told> all(processes_);
  const MPI_Comm comm = MPI_Comm_f2c(communicator_);
  MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, comm);
  if (own) own->touch();
  Segment s;
  for (int p = 0; p < processes_; ++p) s.push_back(p == own_ ? std::move(own) : reach(all[p]));
  bool reached = true;  // a process that got no memory says so itself
  for (int p = 0; p < processes_; ++p) reached = reached && (s[p] || (p != own_ && all[p].bytes == 0));
  const int failed = reached ? processes_ : own_;
  MPI_Allreduce(&failed, &failed_, 1, MPI_INT, MPI_MIN, comm);  // nobody closes before all have opened
  segments_.push_back(std::move(s));
  return failed_ == processes_ ? segments_.back()[own_]->at() : nullptr;
}

std::optional<Segments::Address> Segments::find(const void* address) const {
  const auto* at = static_cast<const std::byte*>(address);
  const auto in_memory_of = [&](int p) -> std::optional<Address> {
    for (std::uint32_t i = 0; i < segments_.size(); ++i) {
      const std::optional<Pages>& pages = segments_[i][p];
      if (!pages || at < pages->at() || at >= pages->at() + pages->bytes()) continue;
      const u64 offset = at - pages->at();
      return Address{i, p, offset};
    }
    return {};
  };
  if (const auto own = in_memory_of(own_)) return own;
  for (int p = 0; p < processes_; ++p)  // what is made where it is needed next
    if (const auto other = in_memory_of(p)) return other;
  return {};
}

Segments::Address Segments::address_of(const void* address) const {
  if (const std::optional<Address> p = find(address)) return *p;
  throw Error("mpi", "memory that no other process can reach").as(Error::Kind::bug);
}

}  // namespace stretto

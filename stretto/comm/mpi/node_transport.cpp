#include "stretto/comm/mpi/node_transport.h"

#include <algorithm>
#include <cstring>

#include "stretto/comm/mpi/patience.h"

namespace stretto {

NodeTransport::NodeTransport(const Program& p, int rank, std::span<const ArenaBases> arenas, Segments& segments,
                             RemoteOptions options, int spins)
    : options_(options), rank_(rank), spins_(spins), free_(arenas.size(), 0) {
  const std::size_t n = p.transfers.size();
  std::byte* own = segments.allocate(64 + n * (sizeof(double) + sizeof(SharedWord)));
  STRETTO_ASSERT(own != nullptr);
  const Segments::Place place = segments.place_of(own);
  for (int r = 0; r < int(arenas.size()); ++r) {
    std::byte* at = segments.at(place, r);
    posts_.push_back({.begun = reinterpret_cast<SharedWord*>(at),
                      .arrived = reinterpret_cast<SharedWord*>(at + 64 + n * sizeof(double)),
                      .due = reinterpret_cast<double*>(at + 64)});
  }
  const int per_actor = int(arenas.size()) / int(p.actors.size()), actor = rank / per_actor;
  const auto rank_at = [&](int a) { return a * per_actor + rank % per_actor; };
  const auto address = [&](int a, const Slot& s) {
    return arenas[std::size_t(rank_at(a))][std::size_t(s.arena)] + s.offset;
  };
  for (int a = 0; a < int(p.actors.size()); ++a)
    if (a != actor) others_.push_back(rank_at(a));
  for (const Transfer& t : p.transfers) {
    const Route& r = p.routes[t.route];
    Message m{.first = std::uint32_t(copies_.size()), .target = rank_at(r.target), .bytes = r.bytes};
    if (options_.copy && !t.direct && r.source == actor)
      for (const Piece& piece : t.pieces) {
        const Copy c{address(r.target, piece.to), address(actor, piece.from), piece.bytes};
        if (m.copies > 0 && copies_.back().to + copies_.back().bytes == c.to &&
            copies_.back().from + copies_.back().bytes == c.from) {
          copies_.back().bytes += c.bytes;
        } else {
          copies_.push_back(c);
          ++m.copies;
        }
      }
    messages_.push_back(m);
  }
}

void NodeTransport::at(std::uint32_t instruction) {
  if (instruction > 0) return;
  set_shared(*posts_[std::size_t(rank_)].begun, ++round_);
  for (const int other : others_)
    wait_shared(
        *posts_[std::size_t(other)].begun, [&](std::uint32_t round) { return round >= round_; }, spins_, stopped_);
}

void NodeTransport::send(std::uint32_t transfer, std::uint32_t round) {
  const Message& m = messages_[transfer];
  Post& post = posts_[std::size_t(m.target)];
  for (std::uint32_t i = m.first; i < m.first + m.copies; ++i)
    std::memcpy(copies_[i].to, copies_[i].from, copies_[i].bytes);
  if (options_.link) {
    double& free = free_[std::size_t(m.target)];
    free = std::max(free, Patience::now()) + double(m.bytes) / options_.link->bandwidth;
    post.due[transfer] = free + options_.link->latency;
  }
  set_shared(post.arrived[transfer], round);
}

double NodeTransport::receive(std::uint32_t transfer, std::uint32_t round) {
  Post& post = posts_[std::size_t(rank_)];
  SharedWord& word = post.arrived[transfer];
  const auto there = [&](std::uint32_t arrived) { return arrived == round; };
  double start = 0;
  if (!there(word.load(std::memory_order_acquire) & ~shared_sleeping)) {
    start = Patience::now();
    wait_shared(word, there, spins_, stopped_);
  }
  if (options_.link && start == 0) start = Patience::now();
  if (options_.link)
    for (double left = 0; (left = post.due[transfer] - Patience::now()) > 0;) {
      if (stopped_) throw Error("runtime", "stopped because another rank failed").as(Error::Kind::run);
      const timespec slice{.tv_sec = 0, .tv_nsec = long(std::min(left, 0.02) * 1e9)};
      nanosleep(&slice, nullptr);
    }
  return start == 0 ? 0 : Patience::now() - start;
}

}  // namespace stretto

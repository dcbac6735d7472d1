#include "stretto/comm/mpi/node_transport.h"

namespace stretto {

NodeTransport::NodeTransport(const Program& p, int rank, std::span<const ArenaBases> arenas, Segments& segments,
                             RemoteOptions options, int spins)
    : options_(options), rank_(rank), spins_(spins), links_(arenas.size()) {
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
    Message m{.target = rank_at(r.target), .bytes = r.bytes};
    if (options_.copy && !t.direct && r.source == actor)
      m.copies = copies_.add(
          t.pieces, [&](const Slot& slot) { return address(actor, slot); },
          [&](const Slot& slot) { return address(r.target, slot); });
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
  copies_.run(m.copies);
  if (options_.link) post.due[transfer] = links_[std::size_t(m.target)].message(now(), m.bytes, *options_.link);
  set_shared(post.arrived[transfer], round);
}

double NodeTransport::receive(std::uint32_t transfer, std::uint32_t round) {
  Post& post = posts_[std::size_t(rank_)];
  SharedWord& word = post.arrived[transfer];
  const auto there = [&](std::uint32_t arrived) { return arrived == round; };
  double start = 0;
  if (!there(word.load(std::memory_order_acquire) & ~shared_sleeping)) {
    start = now();
    wait_shared(word, there, spins_, stopped_);
  }
  if (options_.link) {
    if (start == 0) start = now();
    sleep_until_due(post.due[transfer], stopped_);
  }
  return start == 0 ? 0 : now() - start;
}

}  // namespace stretto

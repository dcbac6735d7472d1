#include "stretto/comm/mpi/node_transport.h"

#include "stretto/base/clock.h"

namespace stretto {

NodeTransport::NodeTransport(const Program& p, int rank, std::span<const ArenaBases> arenas, Segments& segments,
                             int spins)
    : rank_(rank), spins_(spins) {
  std::byte* own = segments.allocate(p.transfers.size() * sizeof(SharedWord));
  STRETTO_ASSERT(own != nullptr);
  const Segments::Address own_at = segments.address_of(own);
  const int ranks = arenas.size(), actors = p.actors.size(), per_actor = ranks / actors;
  const ActorId actor(rank / per_actor);
  for (int r = 0; r < ranks; ++r) arrived_.push_back(reinterpret_cast<SharedWord*>(segments.at(own_at, r)));
  const auto rank_at = [&](ActorId a) { return a.value * per_actor + rank % per_actor; };
  for (const Transfer& t : p.transfers) {
    const Route& r = p.routes[t.route];
    Message m{.target = rank_at(r.target)};
    if (!t.direct && r.source == actor)
      m.copies = copies_.add(
          t.extents, [&](const Slot& slot) { return address(arenas[rank], slot); },
          [&](const Slot& slot) { return address(arenas[m.target], slot); });
    messages_.push_back(m);
  }
}

void NodeTransport::send(TransferId transfer, std::uint32_t round) {
  const Message& m = messages_[transfer];
  copies_.run(m.copies);
  set_shared(arrived_[m.target][transfer.value], round);
}

double NodeTransport::receive(TransferId transfer, std::uint32_t round) {
  SharedWord& word = arrived_[rank_][transfer.value];
  const auto there = [&](std::uint32_t arrived) { return arrived == round; };
  if (there(word.load(std::memory_order_acquire) & ~shared_sleeping)) return 0;
  const double start = now();
  wait_shared(word, there, spins_, stopped_);
  return now() - start;
}

}  // namespace stretto

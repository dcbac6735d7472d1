#include "stretto/comm/async/async_transport.h"

#include "stretto/program/lanes.h"

namespace stretto {

AsyncTransport::AsyncTransport(const Program& p, std::span<const ArenaBases> arenas,
                               const IdVector<ActorId, AsyncDevice*>& devices)
    : arrived_(std::make_unique<LaneWord[]>(p.transfers.size())) {
  for (const Transfer& t : p.transfers) {
    const Route& r = p.routes[t.route];
    Message m{.sender = devices[r.source], .receiver = devices[r.target], .lane = lane_of(t), .copies = {}};
    if (!t.direct)
      m.copies = copies_.add(
          t.extents, [&](const Slot& slot) { return address(arenas[r.source.value], slot); },
          [&](const Slot& slot) { return address(arenas[r.target.value], slot); });
    messages_.push_back(m);
  }
}

void AsyncTransport::send(TransferId t, std::uint32_t round) {
  const Message& m = messages_[t];
  m.sender->enqueue(m.lane, [this, range = m.copies, word = &arrived_[t.value], round] {
    copies_.run(range);
    word->advance(round);
  });
}

double AsyncTransport::receive(TransferId t, std::uint32_t round) {
  messages_[t].receiver->enqueue(DeviceLane::compute, [this, word = &arrived_[t.value], round] {
    word->wait_for(round, [this] { stopped_.check(); });
  });
  return 0;
}

}  // namespace stretto

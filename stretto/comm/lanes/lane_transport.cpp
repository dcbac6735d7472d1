#include "stretto/comm/lanes/lane_transport.h"

#include "stretto/program/lanes.h"

namespace stretto {

LaneTransport::LaneTransport(const Program& p, std::span<const ArenaBases> arenas,
                             const IdVector<ActorId, LaneDevice*>& devices)
    : arrived_(devices[ActorId(0)]->words(p.transfers.size())) {
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

void LaneTransport::send(TransferId t, std::uint32_t round) {
  const Message& m = messages_[t];
  for (const Copies::Copy& c : copies_.all(m.copies)) m.sender->copy(m.lane, c.to, c.from, c.bytes);
  m.sender->advance(m.lane, *arrived_, t.value, round);
}

double LaneTransport::receive(TransferId t, std::uint32_t round) {
  messages_[t].receiver->wait_for(DeviceLane::compute, *arrived_, t.value, round);
  return 0;
}

}  // namespace stretto

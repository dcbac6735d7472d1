#include "stretto/comm/threads/thread_transport.h"

#include "stretto/base/clock.h"
#include "stretto/comm/stop_flag.h"

namespace stretto {

ThreadTransport::ThreadTransport(const Program& p, std::span<const ArenaBases> arenas, int spins)
    : spins_(spins), arrivals_(std::make_unique<Arrival[]>(p.transfers.size())) {
  for (const Transfer& t : p.transfers) {
    const Route& r = p.routes[t.route];
    messages_.push_back(t.direct
                            ? Copies::Range{}
                            : copies_.add(
                                  t.extents, [&](const Slot& slot) { return address(arenas[r.source.value], slot); },
                                  [&](const Slot& slot) { return address(arenas[r.target.value], slot); }));
  }
}

void ThreadTransport::send(TransferId transfer, std::uint32_t round) {
  copies_.run(messages_[transfer]);
  arrivals_[transfer.value].announce(round);
}

double ThreadTransport::receive(TransferId transfer, std::uint32_t round) {
  if (arrivals_[transfer.value].there(round)) return 0;
  const double start = now();
  if (!arrivals_[transfer.value].wait(round, spins_)) throw StopFlag::error();
  return now() - start;
}

void ThreadTransport::stop() noexcept {
  for (std::size_t t = 0; t < messages_.size(); ++t) arrivals_[t].stop();
}

}  // namespace stretto

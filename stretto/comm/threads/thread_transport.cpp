#include "stretto/comm/threads/thread_transport.h"

namespace stretto {
namespace {

Error stopped() { return Error("runtime", "stopped because another rank failed").as(Error::Kind::run); }

}  // namespace

ThreadTransport::ThreadTransport(const Program& p, std::span<const ArenaBases> arenas, ThreadTransportOptions options)
    : options_(options), arrivals_(std::make_unique<Arrival[]>(p.transfers.size())) {
  const auto at = [&](int actor, const Slot& s) { return arenas[std::size_t(actor)][std::size_t(s.arena)] + s.offset; };
  for (const Transfer& t : p.transfers) {
    const Route& r = p.routes[t.route];
    Message m{.bytes = r.bytes};
    m.link = std::uint32_t(r.source) * std::uint32_t(arenas.size()) + std::uint32_t(r.target);
    if (options_.link) m.over = options_.link(r.source, r.target);
    if (options_.copy && !t.direct)
      m.copies = copies_.add(
          t.pieces, [&](const Slot& slot) { return at(r.source, slot); },
          [&](const Slot& slot) { return at(r.target, slot); });
    messages_.push_back(m);
  }
  if (options_.link) {
    due_.assign(p.transfers.size(), 0);
    links_.assign(arenas.size() * arenas.size(), {});
  }
}

void ThreadTransport::send(std::uint32_t transfer, std::uint32_t round) {
  const Message& m = messages_[transfer];
  copies_.run(m.copies);
  if (options_.link) due_[transfer] = links_[m.link].message(now(), m.bytes, m.over);
  arrivals_[transfer].announce(round);
}

double ThreadTransport::receive(std::uint32_t transfer, std::uint32_t round) {
  double start = 0;
  if (!arrivals_[transfer].there(round)) {
    start = now();
    if (!arrivals_[transfer].wait(round, options_.spins)) throw stopped();
  }
  if (options_.link) {
    if (start == 0) start = now();
    sleep_until_due(due_[transfer], stopped_);
  }
  return start == 0 ? 0 : now() - start;
}

void ThreadTransport::stop() noexcept {
  stopped_ = true;
  for (std::size_t t = 0; t < messages_.size(); ++t) arrivals_[t].stop();
}

}  // namespace stretto

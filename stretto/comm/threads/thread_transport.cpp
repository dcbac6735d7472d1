#include "stretto/comm/threads/thread_transport.h"
#include "stretto/base/clock.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace stretto {
namespace {

Error stopped() { return Error("runtime", "stopped because another actor failed").as(Error::Kind::run); }

}  // namespace

ThreadTransport::ThreadTransport(const Program& p, std::span<const ArenaBases> arenas, ThreadTransportOptions options)
    : options_(options), arrivals_(std::make_unique<Arrival[]>(p.transfers.size())) {
  const auto at = [&](int actor, const Slot& s) { return arenas[std::size_t(actor)][std::size_t(s.arena)] + s.offset; };
  for (const Transfer& t : p.transfers) {
    const Route& r = p.routes[t.route];
    Message m{.first = std::uint32_t(copies_.size()), .bytes = r.bytes};
    m.link = std::uint32_t(r.source) * std::uint32_t(arenas.size()) + std::uint32_t(r.target);
    if (options_.link) m.over = options_.link(r.source, r.target);
    if (options_.copy && !t.direct)
      for (const Piece& piece : t.pieces) {
        Copy c{at(r.target, piece.to), at(r.source, piece.from), piece.bytes};
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
  if (options_.link) {
    due_.assign(p.transfers.size(), 0);
    free_.assign(arenas.size() * arenas.size(), 0);
  }
}

void ThreadTransport::send(std::uint32_t transfer, std::uint32_t round) {
  const Message& m = messages_[transfer];
  for (std::uint32_t i = m.first; i < m.first + m.copies; ++i)
    std::memcpy(copies_[i].to, copies_[i].from, copies_[i].bytes);
  if (options_.link) {
    double& free = free_[m.link];
    free = std::max(free, now()) + double(m.bytes) / m.over.bandwidth;
    due_[transfer] = free + m.over.latency;
  }
  arrivals_[transfer].announce(round);
}

double ThreadTransport::receive(std::uint32_t transfer, std::uint32_t round) {
  double start = 0;
  if (!arrivals_[transfer].there(round)) {
    start = now();
    if (!arrivals_[transfer].wait(round, options_.spins)) throw stopped();
  }
  if (!options_.link) return start == 0 ? 0 : now() - start;
  for (double left = 0; (left = due_[transfer] - now()) > 0;) {  // in slices: a stop is not slept through
    if (start == 0) start = now();
    if (stopped_) throw stopped();
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(left, 0.02)));
  }
  return start == 0 ? 0 : now() - start;
}

void ThreadTransport::stop() noexcept {
  stopped_ = true;
  for (std::size_t t = 0; t < messages_.size(); ++t) arrivals_[t].stop();
}

}  // namespace stretto

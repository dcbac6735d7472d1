#include "stretto/comm/threads/routes.h"

#include <cstring>

namespace stretto {
namespace {

std::byte* at(const ArenaBases& bases, const Slot& s) { return bases[std::size_t(s.arena)] + s.offset; }

Error stopped() { return Error("runtime", "stopped because another actor failed").as(Error::Kind::run); }

}  // namespace

ThreadRoutes::ThreadRoutes(const Program& p) {
  for (const Route& r : p.routes) {
    auto ring = std::make_unique<Ring>();
    ring->bytes = (r.bytes + 63) / 64 * 64;
    ring->capacity = r.capacity;
    ring->memory.resize(ring->bytes * u64(r.capacity));
    rings_.push_back(std::move(ring));
  }
}

// The copy happens outside of the lock: a slot between `taken` and `sent` is the receiver's, the others are the
// sender's.
void ThreadRoutes::send(const Transfer& t, const ArenaBases& source) {
  Ring& ring = *rings_[t.route];
  u64 k = 0;
  {
    std::unique_lock lock(ring.mutex);
    ring.changed.wait(lock, [&] { return ring.stopped || ring.sent - ring.taken < u64(ring.capacity); });
    if (ring.stopped) throw stopped();
    k = ring.sent;
  }
  std::byte* to = ring.slot(k);
  for (const Piece& p : t.pieces) {
    std::memcpy(to, at(source, p.from), p.bytes);
    to += p.bytes;
  }
  {
    const std::lock_guard lock(ring.mutex);
    ++ring.sent;
  }
  ring.changed.notify_all();
}

void ThreadRoutes::receive(const Transfer& t, const ArenaBases& target) {
  Ring& ring = *rings_[t.route];
  u64 k = 0;
  {
    std::unique_lock lock(ring.mutex);
    ring.changed.wait(lock, [&] { return ring.stopped || ring.sent > ring.taken; });
    if (ring.stopped) throw stopped();
    k = ring.taken;
  }
  const std::byte* from = ring.slot(k);
  for (const Piece& p : t.pieces) {
    std::memcpy(at(target, p.to), from, p.bytes);
    from += p.bytes;
  }
  {
    const std::lock_guard lock(ring.mutex);
    ++ring.taken;
  }
  ring.changed.notify_all();
}

void ThreadRoutes::stop() noexcept {
  for (const auto& ring : rings_) {
    {
      const std::lock_guard lock(ring->mutex);
      ring->stopped = true;
    }
    ring->changed.notify_all();
  }
}

}  // namespace stretto

#include "stretto/comm/threads/thread_group.h"

#include "stretto/base/clock.h"
#include "stretto/base/relax.h"

namespace stretto {

ThreadGroup::ThreadGroup(int members, GroupOptions options)
    : options_(options), members_(members), prepared_(members), places_count_(options.under_way) {
  STRETTO_ASSERT(members > 0 && options.under_way > 0);
  places_ = std::make_unique<Place[]>(places_count_);
  for (Member& m : members_) m.places.resize(places_count_);
  for (u64 p = 0; p < places_count_; ++p) {
    places_[p].in.resize(members);
    places_[p].out.resize(members);
    places_[p].prepared.resize(members);
  }
}

u64 ThreadGroup::start(int member, std::uint32_t prepared, const void* in, void* out, const void* counts) {
  stopped_.check();
  Member& me = members_[member];
  const u64 ticket = me.next;
  Mine& mine = me.place(ticket);
  const CollectiveShape& s = shape(prepared);
  if (mine.open)
    throw Error("collective", "member {} starts {} while {} others are under way", member, s.str(), places_count_)
        .as(Error::Kind::bug);
  if (in == out && s.kind == CollectiveKind::reduce && s.in_strides != s.out_strides)
    throw Error("collective", "{} in place with other strides", s.str()).as(Error::Kind::bug);
  ++me.next;
  mine = {.open = ticket};
  Place& p = place(ticket);
  p.in[member] = static_cast<const std::byte*>(in);
  p.out[member] = static_cast<std::byte*>(out);
  p.prepared[member] = prepared;
  if (p.started.fetch_add(1, std::memory_order_acq_rel) + 1 == members_.size()) {
    p.counts = static_cast<const std::int32_t*>(counts);
    begin(p, ticket);
  }
  return ticket;
}

void ThreadGroup::begin(Place& p, u64 ticket) {
  p.started.store(0, std::memory_order_relaxed);
  for (std::size_t m = 1; m < members_.size(); ++m)
    if (p.prepared[m] != p.prepared[0]) {
      stop();
      throw Error("collective", "member 0 has started {}, member {} {}", shape(p.prepared[0]).str(), m,
                  shape(p.prepared[m]).str())
          .as(Error::Kind::bug);
    }
  const CollectiveWork& work = prepared_.work(p.prepared[0]);
  p.work = &work;
  if (work.small()) {
    for (std::uint32_t c = 0; c < work.chunks(); ++c) work.run(c, p.in.data(), p.out.data(), p.counts);
    return p.reached.advance(complete(ticket));
  }
  p.next.store(0, std::memory_order_relaxed);
  p.left.store(work.chunks(), std::memory_order_relaxed);
  p.reached.advance(all_started(ticket));
}

// Whether there was one to take.
bool ThreadGroup::take_chunks(Place& p, u64 ticket, std::uint32_t& taken, std::uint32_t at_most) {
  const CollectiveWork& work = *p.work;
  bool any = false;
  while (taken < at_most && p.next.load(std::memory_order_relaxed) < work.chunks()) {
    const std::uint32_t chunk = p.next.fetch_add(1, std::memory_order_relaxed);
    if (chunk >= work.chunks()) break;
    work.run(chunk, p.in.data(), p.out.data(), p.counts);
    ++taken;
    any = true;
    if (p.left.fetch_sub(1, std::memory_order_acq_rel) == 1) p.reached.advance(complete(ticket));
  }
  return any;
}

bool ThreadGroup::progress(int member, u64 ticket) {
  Mine& mine = members_[member].place(ticket);
  if (mine.open != ticket) return true;
  stopped_.check();
  Place& p = place(ticket);
  if (const Milestone::Seen seen = p.reached.look(); !seen.reached(complete(ticket))) {
    if (!seen.reached(all_started(ticket))) return false;
    const std::uint32_t n = members_.size();
    take_chunks(p, ticket, mine.taken, (p.work->chunks() + n - 1) / n);
    if (!p.reached.look().reached(complete(ticket))) return false;
  }
  mine.open.reset();
  return true;
}

double ThreadGroup::wait(int member, u64 ticket) {
  Mine& mine = members_[member].place(ticket);
  if (mine.open != ticket) return 0;
  Place& p = place(ticket);
  double slept = 0;
  for (int looks = 0;; ++looks) {
    const Milestone::Seen seen = p.reached.look();
    if (seen.stopped()) throw StopFlag::error();
    stopped_.check();
    if (seen.reached(complete(ticket))) break;
    if (seen.reached(all_started(ticket)) && take_chunks(p, ticket, mine.taken, p.work->chunks())) continue;
    if (looks < options_.spins) {
      relax();
      continue;
    }
    const double start = now();
    p.reached.sleep(seen);
    slept += now() - start;
  }
  mine.open.reset();
  return slept;
}

void ThreadGroup::stop() noexcept {
  stopped_.set();
  for (u64 p = 0; p < places_count_; ++p) places_[p].reached.stop();
}

}  // namespace stretto

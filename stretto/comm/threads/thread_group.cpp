#include "stretto/comm/threads/thread_group.h"

#include "stretto/cost/collective.h"

namespace stretto {
namespace {

constexpr u64 small_bytes = 128 << 10;  // less takes no longer than waking a thread that helps

Error group_stopped() { return Error("runtime", "stopped because another rank failed").as(Error::Kind::run); }

}  // namespace

ThreadGroup::ThreadGroup(int members, ThreadGroupOptions options)
    : options_(options), members_(std::size_t(members)), places_count_(u64(options.under_way)) {
  STRETTO_ASSERT(members > 0 && options.under_way > 0);
  places_ = std::make_unique<Place[]>(places_count_);
  for (Member& m : members_) {
    m.open.resize(places_count_);
    m.taken.resize(places_count_);
  }
  for (std::size_t p = 0; p < places_count_; ++p) {
    places_[p].in.resize(members_.size());
    places_[p].out.resize(members_.size());
    places_[p].prepared.resize(members_.size());
  }
}

std::uint32_t ThreadGroup::prepare(const CollectiveShape& s) {
  if (s.members != members())
    throw Error("collective", "{} is for {} members, the group has {}", s.str(), s.members, members());
  for (std::size_t i = 0; i < prepared_.size(); ++i)
    if (prepared_[i]->asked == s) return std::uint32_t(i);
  const double seconds = options_.cluster ? collective_seconds(s, *options_.cluster, options_.ranks)
                         : options_.link  ? collective_seconds(s, *options_.link)
                                          : 0;
  prepared_.push_back(std::make_unique<Prepared>(Prepared{s, CollectiveWork(s), seconds}));
  return std::uint32_t(prepared_.size() - 1);
}

u64 ThreadGroup::start(int member, std::uint32_t prepared, const void* in, void* out) {
  if (stopped_.load(std::memory_order_relaxed)) throw group_stopped();
  Member& me = members_[std::size_t(member)];
  const u64 ticket = me.next;
  const std::size_t at = place_of(ticket);
  const CollectiveShape& s = prepared_[prepared]->asked;
  if (me.open[at])
    throw Error("collective", "member {} starts {} while {} others are under way", member, s.str(), places_count_)
        .as(Error::Kind::bug);
  if (in == out && s.kind == CollectiveKind::reduce && s.in_strides != s.out_strides)
    throw Error("collective", "{} in place with other strides", s.str()).as(Error::Kind::bug);
  ++me.next;
  me.open[at] = ticket + 1;
  me.taken[at] = 0;
  Place& p = places_[at];
  p.in[std::size_t(member)] = static_cast<const std::byte*>(in);
  p.out[std::size_t(member)] = static_cast<std::byte*>(out);
  p.prepared[std::size_t(member)] = prepared;
  if (p.started.fetch_add(1, std::memory_order_acq_rel) + 1 == members_.size()) begin(p, ticket);
  return ticket;
}

void ThreadGroup::begin(Place& p, u64 ticket) {
  p.started.store(0, std::memory_order_relaxed);
  for (std::size_t m = 1; m < members_.size(); ++m)
    if (p.prepared[m] != p.prepared[0]) {
      stop();
      throw Error("collective", "member 0 has started {}, member {} {}", prepared_[p.prepared[0]]->asked.str(), m,
                  prepared_[p.prepared[m]]->asked.str())
          .as(Error::Kind::bug);
    }
  p.what = prepared_[p.prepared[0]].get();
  if (timed()) p.due = link_.collective(now(), p.what->seconds);
  const CollectiveWork& work = p.what->work;
  const std::uint32_t chunks = options_.copy ? work.chunks() : 0;
  if (chunks == 0 || work.bytes() <= small_bytes) {
    for (std::uint32_t c = 0; c < chunks; ++c) work.run(c, p.in.data(), p.out.data());
    return p.reached.advance(complete(ticket));
  }
  p.next.store(0, std::memory_order_relaxed);
  p.left.store(chunks, std::memory_order_relaxed);
  p.reached.advance(all_started(ticket));
}

// Whether there was one to take.
bool ThreadGroup::take_chunks(Place& p, u64 ticket, std::uint32_t& taken, std::uint32_t at_most) {
  const CollectiveWork& work = p.what->work;
  bool any = false;
  while (taken < at_most && p.next.load(std::memory_order_relaxed) < work.chunks()) {
    const std::uint32_t chunk = p.next.fetch_add(1, std::memory_order_relaxed);
    if (chunk >= work.chunks()) break;
    work.run(chunk, p.in.data(), p.out.data());
    ++taken;
    any = true;
    if (p.left.fetch_sub(1, std::memory_order_acq_rel) == 1) p.reached.advance(complete(ticket));
  }
  return any;
}

bool ThreadGroup::progress(int member, u64 ticket) {
  Member& me = members_[std::size_t(member)];
  const std::size_t at = place_of(ticket);
  if (me.open[at] != ticket + 1) return true;
  if (stopped_.load(std::memory_order_relaxed)) throw group_stopped();
  Place& p = places_[at];
  if (const Milestone::Seen seen = p.reached.look(); !seen.reached(complete(ticket))) {
    if (!seen.reached(all_started(ticket))) return false;
    const std::uint32_t n = std::uint32_t(members_.size());
    take_chunks(p, ticket, me.taken[at], (p.what->work.chunks() + n - 1) / n);
    if (!p.reached.look().reached(complete(ticket))) return false;
  }
  if (timed() && now() < p.due) return false;
  me.open[at] = 0;
  return true;
}

double ThreadGroup::wait(int member, u64 ticket) {
  Member& me = members_[std::size_t(member)];
  const std::size_t at = place_of(ticket);
  if (me.open[at] != ticket + 1) return 0;
  Place& p = places_[at];
  double slept = 0;
  for (int looks = 0;; ++looks) {
    const Milestone::Seen seen = p.reached.look();
    if (seen.stopped() || stopped_.load(std::memory_order_relaxed)) throw group_stopped();
    double left = -1;
    if (seen.reached(complete(ticket))) {
      if (!timed() || (left = p.due - now()) <= 0) break;
    } else {
      if (seen.reached(all_started(ticket)) && take_chunks(p, ticket, me.taken[at], ~0u)) continue;
      if (looks < options_.spins) {
        __builtin_ia32_pause();
        continue;
      }
    }
    const double start = now();
    p.reached.sleep(seen, left);
    slept += now() - start;
  }
  me.open[at] = 0;
  return slept;
}

void ThreadGroup::stop() noexcept {
  stopped_ = true;
  for (std::size_t p = 0; p < places_count_; ++p) places_[p].reached.stop();
}

}  // namespace stretto

#include "stretto/comm/mpi/node_group.h"

#include "stretto/base/clock.h"
#include "stretto/base/relax.h"

namespace stretto {

NodeGroup::NodeGroup(std::vector<const Segments*> memory, std::unique_ptr<Segments> control, int member,
                     GroupOptions options)
    : memory_(std::move(memory)),
      control_(std::move(control)),
      members_(control_->processes()),
      member_(member),
      options_(options),
      places_(options.under_way),
      mine_(places_),
      prepared_(members_) {
  stride_ = (sizeof(Place) + members_ * sizeof(Given) + 63) / 64 * 64;
  std::byte* own = control_->allocate(places_ * stride_);
  STRETTO_ASSERT(own != nullptr);
  base_ = control_->at(control_->address_of(own), 0);
  for (Mine& m : mine_) {
    m.in.resize(members_);
    m.out.resize(members_);
  }
}

NodeGroup::Place& NodeGroup::place(u64 ticket) const {
  return *reinterpret_cast<Place*>(base_ + ticket % places_ * stride_);
}
NodeGroup::Given* NodeGroup::given(u64 ticket) const {
  return reinterpret_cast<Given*>(base_ + ticket % places_ * stride_ + sizeof(Place));
}

u64 NodeGroup::start(int member, std::uint32_t prepared, const void* in, void* out, const void* counts) {
  stopped_.check();
  const u64 ticket = next_++;
  Mine& m = mine(ticket);
  STRETTO_ASSERT(member == member_ && !m.open, "too many collectives are under way");
  m.open = ticket;
  m.seen = false;
  m.taken = 0;
  m.counts = static_cast<const std::int32_t*>(counts);
  Given& own = given(ticket)[member_];
  own.prepared = prepared;
  if (prepared_.work(prepared).chunks() > 0) own.in = spot_of(in), own.out = spot_of(out);
  if (place(ticket).started.fetch_add(1, std::memory_order_acq_rel) + 1 == members_) begin(ticket, prepared);
  return ticket;
}

void NodeGroup::begin(u64 ticket, std::uint32_t prepared) {
  Place& p = place(ticket);
  p.started.store(0, std::memory_order_relaxed);
  for (std::size_t k = 0; k < members_; ++k)
    if (given(ticket)[k].prepared != prepared)
      throw Error("collective", "member {} has started another one than {}", k, prepared_.shape(prepared).str())
          .as(Error::Kind::bug);
  const CollectiveWork& work = look(ticket);
  const Mine& m = mine(ticket);
  if (work.small()) {
    for (std::uint32_t c = 0; c < work.chunks(); ++c) work.run(c, m.in.data(), m.out.data(), m.counts);
    set_shared(p.phase, complete(ticket));
  } else {
    p.next.store(0, std::memory_order_relaxed);
    p.left.store(work.chunks(), std::memory_order_relaxed);
    set_shared(p.phase, all_started(ticket));
  }
}

NodeGroup::Spot NodeGroup::spot_of(const void* address) const {
  for (std::uint32_t m = 0; m < memory_.size(); ++m)
    if (const auto found = memory_[m]->find(address)) return {m, *found};
  throw Error("collective", "memory that no other process can reach").as(Error::Kind::bug);
}

const CollectiveWork& NodeGroup::look(u64 ticket) {
  Mine& m = mine(ticket);
  const Given* all = given(ticket);
  if (!m.seen)
    for (std::size_t k = 0; k < members_; ++k) {
      m.in[k] = at(all[k].in);
      m.out[k] = at(all[k].out);
    }
  m.seen = true;
  return prepared_.work(all[member_].prepared);
}

// Whether there was one to take.
bool NodeGroup::take_chunks(u64 ticket, std::uint32_t at_most) {
  const CollectiveWork& work = look(ticket);
  Place& p = place(ticket);
  Mine& m = mine(ticket);
  bool any = false;
  while (m.taken < at_most && p.next.load(std::memory_order_relaxed) < work.chunks()) {
    const std::uint32_t chunk = p.next.fetch_add(1, std::memory_order_relaxed);
    if (chunk >= work.chunks()) break;
    work.run(chunk, m.in.data(), m.out.data(), m.counts);
    ++m.taken;
    any = true;
    if (p.left.fetch_sub(1, std::memory_order_acq_rel) == 1) set_shared(p.phase, complete(ticket));
  }
  return any;
}

bool NodeGroup::advance(u64 ticket, Eagerness how) {
  Mine& m = mine(ticket);
  if (m.open != ticket) return true;
  stopped_.check();
  const auto phase = [&] { return place(ticket).phase.load(std::memory_order_acquire) & ~shared_sleeping; };
  // One look for both: a small one is complete at once, and has no chunks that anybody may take.
  if (const std::uint32_t seen = phase(); !reached(seen, complete(ticket))) {
    if (!reached(seen, all_started(ticket))) return false;
    const std::uint32_t all = look(ticket).chunks(), n = members_;
    take_chunks(ticket, how == Eagerness::all_there_is ? all : (all + n - 1) / n);
    if (!reached(phase(), complete(ticket))) return false;
  }
  m.open.reset();
  return true;
}

double NodeGroup::wait(int, u64 ticket) {
  Mine& m = mine(ticket);
  if (m.open != ticket) return 0;
  SharedWord& word = place(ticket).phase;
  double slept = 0;
  for (int looks = 0;; ++looks) {
    const std::uint32_t seen = word.load(std::memory_order_acquire), phase = seen & ~shared_sleeping;
    if (reached(phase, complete(ticket))) break;
    stopped_.check();
    if (reached(phase, all_started(ticket)) && take_chunks(ticket, look(ticket).chunks())) continue;
    if (looks < options_.spins) {
      relax();
      continue;
    }
    const double start = now();
    sleep_shared(word, seen);
    slept += now() - start;
  }
  m.open.reset();
  return slept;
}

}  // namespace stretto

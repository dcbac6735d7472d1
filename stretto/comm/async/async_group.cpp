#include "stretto/comm/async/async_group.h"

namespace stretto {

AsyncGroup::AsyncGroup(const std::vector<AsyncDevice*>& of_members, DeviceLane lane)
    : members_(of_members.size()),
      lane_(lane),
      prepared_(of_members.size()),
      in_(of_members.size()),
      out_(of_members.size()) {
  for (std::size_t m = 0; m < members_.size(); ++m) members_[m].device = of_members[m];
}

u64 AsyncGroup::start(int member, std::uint32_t prepared, const void* in, void* out, const void* counts) {
  Member& m = members_[member];
  m.device->enqueue(lane_, [this, member, &work = prepared_.work(prepared), from = static_cast<const std::byte*>(in),
                            to = static_cast<std::byte*>(out), counts = static_cast<const std::int32_t*>(counts)] {
    run(member, work, {from, to, counts});
  });
  return m.started++;
}

void AsyncGroup::run(int member, const CollectiveWork& work, const Given& own) {
  in_[member] = own.in;
  out_[member] = own.out;
  meet(members_[member]);  // all operands are there
  for (std::uint32_t c = member; c < work.chunks(); c += members_.size())
    work.run(c, in_.data(), out_.data(), own.counts);
  meet(members_[member]);  // all results are
}

void AsyncGroup::meet(Member& m) {
  m.came.advance(++m.meeting);
  for (const Member& other : members_) other.came.wait_for(m.meeting, [this] { stopped_.check(); });
}

}  // namespace stretto

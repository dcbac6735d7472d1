#include "stretto/comm/lanes/lane_group.h"

#include <algorithm>

namespace stretto {

LaneGroup::LaneGroup(const std::vector<LaneMember>& members, const LaneMemory& memory, DeviceLane lane)
    : memory_(memory), lane_(lane), came_(members[0].device->words(members.size())) {
  for (const LaneMember& m : members) {
    members_.push_back({.at = m, .in = std::vector<std::byte*>(members.size() + 1), .out = {}});
    members_.back().out.resize(members.size());
  }
}

std::uint32_t LaneGroup::prepare(const CollectiveShape& s) {
  if (std::cmp_not_equal(s.members, members_.size()))
    throw Error("collective", "{} is for {} members, the group has {}", s.str(), s.members, members_.size());
  const auto known = std::ranges::find(shapes_, s);
  if (known != shapes_.end()) return std::uint32_t(known - shapes_.begin());
  for (std::size_t m = 0; m < members_.size(); ++m)
    members_[m].shares.push_back(members_[m].at.device->prepare_share(s, int(m)));
  shapes_.push_back(s);
  return std::uint32_t(shapes_.size() - 1);
}

u64 LaneGroup::start(int member, std::uint32_t prepared, const void* in, void* out, const void* counts) {
  Member& m = members_[member];
  find(m.in, member, in), find(m.out, member, out);
  m.in.back() = static_cast<std::byte*>(const_cast<void*>(counts));
  meet(member);  // all operands are there
  const Now nothing;
  m.at.device->launch(lane_, m.shares[prepared], {.in = m.in.data(), .out = m.out.data(), .now = nothing});
  meet(member);  // all results are
  return m.started++;
}

void LaneGroup::find(std::vector<std::byte*>& all, int member, const void* own) const {
  const LaneMemory::Place place = memory_.find(members_[member].at.rank, own);
  for (std::size_t m = 0; m < members_.size(); ++m) all[m] = memory_.at(members_[m].at.rank, place);
}

void LaneGroup::meet(int member) {
  Member& me = members_[member];
  me.at.device->advance(lane_, *came_, std::size_t(member), ++me.meeting);
  for (std::size_t m = 0; m < members_.size(); ++m)
    if (std::cmp_not_equal(m, member)) me.at.device->wait_for(lane_, *came_, m, me.meeting);
}

}  // namespace stretto

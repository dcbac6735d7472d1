#include "stretto/runtime/groups.h"

#include <algorithm>

namespace stretto {

Groups::Place Groups::place(const std::vector<std::string>& axes, int actor, int coordinate, Lane lane) {
  const Mesh& mesh = program_.mesh;
  const std::vector<int> members = group_of(mesh, coordinate, axes);
  const int member = int(block_of(mesh, coordinates_of(mesh, coordinate), axes));
  auto& group = groups_[{axes, actor, members[0], lane}];
  if (!group) {
    ThreadGroupOptions o = options_;
    if (lane == Lane::gradients) o.under_way = std::max(o.under_way, int(program_.buckets.size()));
    std::vector<int> ranks;
    for (const int m : members) ranks.push_back(program_.rank_of(actor, m));
    if (o.cluster) o.ranks = ranks;
    if (peers_)
      group = peers_->group(ranks, member, {.link = o.link, .copy = o.copy}, o.under_way);
    else
      group = std::make_unique<ThreadGroup>(int(members.size()), o);
  }
  return {group.get(), member};
}

void Groups::stop() noexcept {
  for (auto& [key, group] : groups_) group->stop();
}

}  // namespace stretto

#include "stretto/runtime/groups.h"

#include <algorithm>

namespace stretto {

Groups::Place Groups::place(const std::vector<std::string>& axes, int actor, int coordinate, Lane lane) {
  const Mesh& mesh = program_.mesh;
  const std::vector<int> members = group_of(mesh, coordinate, axes);
  auto& group = groups_[{axes, actor, members[0], lane}];
  if (!group) {
    ThreadGroupOptions o = options_;
    if (lane == Lane::gradients) o.under_way = std::max(o.under_way, int(program_.buckets.size()));
    group = std::make_unique<ThreadGroup>(int(members.size()), o);
  }
  return {group.get(), int(block_of(mesh, coordinates_of(mesh, coordinate), axes))};
}

void Groups::stop() noexcept {
  for (auto& [key, group] : groups_) group->stop();
}

}  // namespace stretto

#include "stretto/runtime/groups.h"

#include <algorithm>

namespace stretto {

Groups::Membership Groups::membership(const std::vector<std::string>& axes, ActorId actor, int coordinate,
                                      DeviceLane lane) {
  const Mesh& mesh = program_.mesh;
  const std::vector<int> members = group_of(mesh, coordinate, axes);
  const int member = static_cast<int>(block_of(mesh, coordinates_of(mesh, coordinate), axes));
  auto& group = groups_[{axes, actor, members[0], lane}];
  if (!group) {
    std::vector<int> ranks;
    for (const int m : members) ranks.push_back(program_.rank_of(actor, m));
    group = wires_.group_in(lane, ranks, member, std::max(16, under_way_));
  }
  return {group.get(), member};
}

// A collective that is awaited late counts together with all that were started after it, finished or not.
int Groups::most_under_way(const Program& p) {
  int most = 0;
  for (const ActorProgram& a : p.actors) {
    int next = 0;
    std::map<CollectiveId, int> first;  // of each that is under way: the number of its first call
    const auto start = [&](const Start& s) {
      const CallRange calls = calls_of(s.run, *p.calls[s.run.task]);
      first[s.collective] = next;
      next += static_cast<int>(calls.to.value - calls.from.value);
      for (const auto& [collective, ticket] : first) most = std::max(most, next - ticket);
    };
    for (const Instruction& i : a.code)
      match(
          i, start, [&](const Await& w) { first.erase(w.collective); }, [](const Run&) {}, [](const Send&) {},
          [](const Receive&) {});
  }
  return most;
}

void Groups::stop() noexcept {
  for (auto& [key, group] : groups_) group->stop();
}

}  // namespace stretto

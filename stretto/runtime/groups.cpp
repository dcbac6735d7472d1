#include "stretto/runtime/groups.h"

#include <algorithm>

namespace stretto {

Groups::Place Groups::place(const std::vector<std::string>& axes, int actor, int coordinate, Lane lane) {
  const Mesh& mesh = program_.mesh;
  const std::vector<int> members = group_of(mesh, coordinate, axes);
  const int member = int(block_of(mesh, coordinates_of(mesh, coordinate), axes));
  auto& group = groups_[{axes, actor, members[0], lane}];
  if (!group) {
    int under_way = 16;
    if (lane == Lane::gradients) under_way = std::max<int>(under_way, program_.buckets.size());
    if (lane == Lane::storage) under_way = std::max(under_way, under_way_);
    std::vector<int> ranks;
    for (const int m : members) ranks.push_back(program_.rank_of(actor, m));
    group = wires_.group(ranks, member, under_way);
  }
  return {group.get(), member};
}

// What is awaited late counts with all that was started behind it, finished or not.
int Groups::most_under_way(const Program& p) {
  int most = 0;
  for (const ActorProgram& a : p.actors) {
    int next = 0;
    std::map<std::uint32_t, int> first;  // per number that is under way: the first of its collectives
    for (const Instruction& i : a.code) {
      if (const Await* w = std::get_if<Await>(&i)) first.erase(w->number);
      const Start* s = std::get_if<Start>(&i);
      if (!s) continue;
      first[s->number] = next;
      next += int(p.calls[s->run.task]->calls.size());
      for (const auto& [number, ticket] : first) most = std::max(most, next - ticket);
    }
  }
  return most;
}

void Groups::stop() noexcept {
  for (auto& [key, group] : groups_) group->stop();
}

}  // namespace stretto

#include "stretto/program/frozen.h"

#include <fmt/format.h>

#include "stretto/base/text.h"

namespace stretto {

IdVector<ParamId, bool> frozen_params(const Step& s) {
  IdVector<ParamId, bool> frozen(s.params.size(), true);
  for (const Task& t : s.tasks)
    for (const Binding& b : t.outputs)
      if (const ParamId* p = as<ParamId>(b)) frozen[*p] = false;
  return frozen;
}

int keeper(const Program& p, int rank, std::span<const int> nodes) {
  const int each = p.ranks_per_actor(), first = rank / each * each;
  const auto same = [&](int other) {
    return block_of(p.mesh, coordinates_of(p.mesh, other - first), p.frozen_axes) ==
               block_of(p.mesh, coordinates_of(p.mesh, rank - first), p.frozen_axes) &&
           (nodes.empty() || nodes[other] == nodes[rank]);
  };
  int found = first;
  while (!same(found)) ++found;
  return found;
}

int sharers(const Program& p) {
  int groups = 1;
  for (const std::string& axis : p.frozen_axes) groups *= p.mesh.extent(axis);
  return p.ranks_per_actor() / groups;
}

std::string shared_str(const Program& p) {
  const int each = sharers(p), groups = p.ranks_per_actor() / each;
  double bytes = 0;
  int parts = 0;
  for (const ActorProgram& a : p.actors)
    if (const u64 own = a.bytes[Arena::frozen]; own > 0) bytes += 1.0 * groups * own, parts += groups;
  if (each == 1 || parts == 0) return "";
  return fmt::format("{} of frozen weights{} shared by {} ranks", human_bytes(bytes),
                     parts > 1 ? fmt::format(" in {} parts, each", parts) : ",", each);
}

}  // namespace stretto

#include "stretto/comm/inner/notes.h"

namespace stretto {

Program notes_of(const Program& p) {
  Program notes;
  notes.mesh = p.mesh;
  for (const ActorProgram& a : p.actors) {
    ActorProgram n;
    n.code =
        Code(std::vector<Instruction>(a.code.size()));  // moments at which messages may come and go stay what they are
    n.bytes[Arena::activations] = sizeof(double) * p.transfers.size();
    notes.actors.push_back(std::move(n));
  }
  for (const Route& r : p.routes) notes.routes.push_back({r.source, r.target, sizeof(double), r.name});
  for (const Transfer& t : p.transfers) {
    const Slot slot{.offset = sizeof(double) * notes.transfers.size()};
    notes.transfers.push_back({.route = t.route,
                               .extents = {{.from = slot, .to = slot, .bytes = sizeof(double)}},
                               .posted = t.posted,
                               .released = t.released});
  }
  return notes;
}

}  // namespace stretto

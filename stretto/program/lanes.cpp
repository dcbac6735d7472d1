#include "stretto/program/lanes.h"

#include <map>

namespace stretto {
namespace {

class LaneWalk {
 public:
  LaneWalk(const Program& p, ActorId actor) : p_(p), code_(p.actors[actor].code) {}

  Lanes run() {
    for (InstructionId i : code_.ids()) {
      out_.waits.push_back({});
      match(
          code_[i], [&](const Run&) { compute(i); }, [&](const Receive&) { compute(i); },
          [&](const Send& s) { send(i, s.transfer); },
          [&](const Start& s) {
            beside(i, lane_of(p_.task(s.run).part));
            started_[s.collective] = i;
          },
          [&](const Await& w) {
            compute(i);
            if (const auto it = started_.find(w.collective); it != started_.end()) out_.waits[i].push_back(it->second);
          });
    }
    return std::move(out_);
  }

 private:
  void compute(InstructionId i) {
    out_.lane.push_back(DeviceLane::compute);
    newest_ = i;
    // The memory of what was sent is used again from here on.
    while (!kept_.empty() && kept_.begin()->first <= i) {
      out_.waits[i].push_back(kept_.begin()->second);
      kept_.erase(kept_.begin());
    }
  }
  void beside(InstructionId i, DeviceLane lane) {
    out_.lane.push_back(lane);
    if (newest_) out_.waits[i].push_back(*newest_);
  }
  void send(InstructionId i, TransferId id) {
    const Transfer& t = p_.transfers[id];
    if (lane_of(t) == DeviceLane::compute) return compute(i);
    beside(i, DeviceLane::messages);
    kept_.insert({*t.released, i});
  }

  const Program& p_;
  const Code& code_;
  Lanes out_;
  std::optional<InstructionId> newest_;  // in the compute lane
  std::map<CollectiveId, InstructionId> started_;
  std::multimap<InstructionId, InstructionId> kept_;  // where memory is released, and the Send it was kept for
};

}  // namespace

DeviceLane lane_of(Part part) {
  if (part == Part::sum || part == Part::combine) return DeviceLane::gradients;
  return part == Part::U || part == Part::S ? DeviceLane::storage : DeviceLane::collectives;
}

DeviceLane lane_of(const Transfer& t) {
  const bool kept = t.released && !t.direct && !t.extents.empty();
  return kept ? DeviceLane::messages : DeviceLane::compute;
}

std::string_view name_of(DeviceLane lane) {
  constexpr std::string_view names[] = {"compute", "messages", "collectives", "gradients", "storage"};
  return names[static_cast<int>(lane)];
}

Lanes lanes_of(const Program& p, ActorId actor) { return LaneWalk(p, actor).run(); }

}  // namespace stretto

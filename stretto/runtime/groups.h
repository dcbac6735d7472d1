// The groups of ranks that collectives go through, within one process or between several. A group is made of the ranks
// of one actor that differ along some axes only.
//
//   std::unique_ptr<Wiring> wires = thread_wiring(spins);
//   Groups groups(program, *wires);
//   Groups::Membership at = groups.membership({"data"}, actor, coordinate, DeviceLane::compute);
//   at.group->wait(at.member, at.group->start(at.member, prepared, in, out));
//
// All members run the same instructions, so that the n-th collective of a group is the same one for all of them. Every
// lane has groups of its own.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "stretto/comm/wiring.h"
#include "stretto/ir/lane.h"
#include "stretto/program/program.h"

namespace stretto {

class Groups {
 public:
  struct Membership {  // of one rank
    CollectiveGroup* group = nullptr;
    int member = 0;
  };
  Groups(const Program& p, Wiring& wires) : program_(p), wires_(wires), under_way_(most_under_way(p)) {}
  Membership membership(const std::vector<std::string>& axes, ActorId actor, int coordinate, DeviceLane);
  void stop() noexcept;

 private:
  const Program& program_;
  Wiring& wires_;
  static int most_under_way(const Program&);  // calls from the oldest that is not awaited yet to the newest, at most

  int under_way_ = 0;
  std::map<std::tuple<std::vector<std::string>, ActorId, int, DeviceLane>, std::unique_ptr<CollectiveGroup>> groups_;
};

}  // namespace stretto

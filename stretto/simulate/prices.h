// What the tasks, messages and collectives of a program take on a cluster, under its software (cost/stack.h): each is
// found once.
//
//   Prices prices(program, cluster);
//   Priced t = prices.task(actor, task);                     // products, attention, elements, collectives
//   double s = prices.collective(shape, actor);
#pragma once
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "stretto/cost/collective.h"
#include "stretto/cost/factors.h"
#include "stretto/cost/machine.h"
#include "stretto/program/lanes.h"
#include "stretto/program/overlap/work_times.h"
#include "stretto/program/program.h"

namespace stretto {

// Seconds by what they are spent on.
struct Priced {
  double products = 0, attention = 0, elements = 0, collectives = 0;
  double seconds() const { return products + attention + elements + collectives; }
  Priced& operator+=(const Priced& p) {
    products += p.products, attention += p.attention, elements += p.elements, collectives += p.collectives;
    return *this;
  }
};

// Collectives of one lane and one group go one after the other.
using WireId = Id<struct WireTag>;

class Prices {
 public:
  Prices(const Program&, const Cluster&);  // the program must outlive it

  Priced task(ActorId, TaskId);
  Priced part(ActorId, const Run&);  // of some of its calls
  // As long as in the slowest of the actor's groups.
  double collective(const CollectiveShape&, ActorId);
  const StackFactors& factors() const { return f_; }
  // What the stack's own program takes to issue a task.
  double issue(Part part) const { return of_an_action(part) ? f_.issue : 0; }
  // Of a run that is started, one after the other. Gradients may have another type on the wire than in the program.
  struct Started {
    double seconds = 0;
    WireId wire;
  };
  const std::vector<Started>& started(ActorId, const Run&);

  struct Message {
    double wire = 0, latency = 0;  // while the link is busy; until it is there
    bool waits = false;            // its sender waits for it
  };
  Message message(TransferId);

 private:
  Priced calls(ActorId, TaskId, const Calls&, CallRange);
  Priced of_task(ActorId, TaskId);
  Priced recomputed(ActorId, TaskId);
  double joined(const Calls&, CallRange, CallId, const ProductShape&, bool narrow) const;
  bool narrow_gather(const Task&, const CollectiveShape&) const;
  int alike_over_tensor(const Graph&, const Node&) const;
  double cut_exchange(const CollectiveShape&, ActorId, int alike);
  double logits_of(const Calls&) const;
  double of_loss(double logits) const;
  int copies_of(const Transfer&) const;
  std::vector<Started> find_started(ActorId, const Run&);
  Message find_message(const Transfer&) const;

  // What some of a task's calls are, found once. A task has few parts.
  template <class T>
  struct OfCalls {
    CallRange calls;
    T is;
  };
  struct OfTask {
    std::optional<Priced> whole;
    std::vector<OfCalls<Priced>> parts = {};
    std::vector<OfCalls<std::vector<Started>>> started = {};
  };
  // Equal tasks of an actor have one: of a body, a part, whether it is the model's last piece, and the piece itself
  // where the stack makes again what the body does not say.
  using Kind = std::tuple<const Calls*, ActorId, Part, bool, std::optional<PieceId>>;
  OfTask& of(ActorId, TaskId);
  bool last(const Task& t) const { return t.piece && t.piece->value + 1 == p_.step->pieces; }
  bool made_otherwise(const Task&) const;

  const Program& p_;
  const Cluster c_;
  const StackFactors f_;
  WorkTimes times_;
  std::map<Kind, OfTask> kinds_;
  IdVector<ActorId, IdVector<TaskId, OfTask*>> tasks_;  // of kinds_; null: not asked for yet
  IdVector<RouteId, std::optional<Message>> messages_;
  std::map<std::pair<DeviceLane, std::vector<std::string>>, WireId> wires_;
};

}  // namespace stretto

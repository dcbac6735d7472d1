// Notes, while a program is made, what goes from one actor to another: a route for each thing, a transfer for each time
// it goes.
//
//   Transfers transfers(program);
//   const TransferId t = transfers.of_value(value, microbatch, source, target, true);
#pragma once
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "stretto/program/program.h"

namespace stretto {

class Transfers {
 public:
  explicit Transfers(Program& p) : p_(p) {}

  // The same one whenever it is asked for. `direct`: made where its reader looks for it.
  TransferId of_value(ValueId, MicrobatchId, ActorId source, ActorId target, bool direct);
  TransferId of(ParamId, ActorId source, ActorId target);
  TransferId of(AccumulatorId, ActorId source, ActorId target);
  TransferId of(SentSquares, ActorId source, ActorId target);

 private:
  RouteId route(ActorId source, ActorId target, u64 bytes, std::string name);
  TransferId whole(Sent, u64 bytes, ActorId source, ActorId target, std::string name);

  Program& p_;
  std::map<std::tuple<std::string, ActorId, ActorId>, RouteId> routes_;
  struct OfValue {                      // to one actor
    std::map<ActorId, RouteId> routes;  // by its source
    IdVector<MicrobatchId, std::optional<TransferId>> transfers;
  };
  std::map<std::pair<ValueId, ActorId>, OfValue> values_;
};

SentSquares in_ranges(std::vector<SquareId>);

// Keeps what is sent unchanged while one more action runs, which is long enough to send it meanwhile. Persistent things
// are kept to the end of the step.
void keep_sent(Program&);

}  // namespace stretto

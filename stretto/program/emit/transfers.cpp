#include "stretto/program/emit/transfers.h"

#include <fmt/format.h>

#include <algorithm>

#include "stretto/program/overlap/region.h"

namespace stretto {

RouteId Transfers::route(ActorId source, ActorId target, u64 bytes, std::string name) {
  const auto [it, fresh] = routes_.try_emplace({name, source, target}, p_.routes.next_id());
  if (fresh) p_.routes.push_back({source, target, bytes, std::move(name)});
  return it->second;
}

TransferId Transfers::whole(Sent what, u64 bytes, ActorId source, ActorId target, std::string name) {
  return p_.transfers.push_back(
      {.route = route(source, target, bytes, std::move(name)), .what = std::move(what), .extents = {{.bytes = bytes}}});
}

TransferId Transfers::of_value(ValueId value, MicrobatchId microbatch, ActorId source, ActorId target, bool direct) {
  OfValue& all = values_[{value, target}];
  if (all.transfers.empty()) all.transfers.resize(p_.pipe_of.size());
  std::optional<TransferId>& known = all.transfers[microbatch];
  if (known) return *known;
  const CrossValue& v = p_.step->values[value];
  auto way = all.routes.find(source);
  if (way == all.routes.end())
    way = all.routes.emplace(source, route(source, target, v.bytes, fmt::format("value {} {}", value.value, v.name)))
              .first;
  known = p_.transfers.push_back(
      {.route = way->second, .what = SentValue{value, microbatch}, .extents = {{.bytes = v.bytes}}, .direct = direct});
  return *known;
}

TransferId Transfers::of(ParamId p, ActorId source, ActorId target) {
  return whole(p, p_.step->bytes(p_.step->params[p]), source, target, fmt::format("parameter {}", p.value));
}

TransferId Transfers::of(AccumulatorId a, ActorId source, ActorId target) {
  return whole(a, p_.step->bytes(p_.step->accumulators[a].type), source, target, fmt::format("gradient {}", a.value));
}

TransferId Transfers::of(SentSquares squares, ActorId source, ActorId target) {
  std::vector<Extent> extents;
  u64 bytes = 0;
  for (const SquareRange& r : squares.ranges) {
    extents.push_back({.bytes = 8 * r.count});
    bytes += extents.back().bytes;
  }
  const RouteId way = route(source, target, bytes, fmt::format("squared norms of {}", source.value));
  return p_.transfers.push_back({.route = way, .what = std::move(squares), .extents = std::move(extents)});
}

SentSquares in_ranges(std::vector<SquareId> squares) {
  std::sort(squares.begin(), squares.end());
  SentSquares all;
  for (SquareId s : squares) {
    SquareRange* last = all.ranges.empty() ? nullptr : &all.ranges.back();
    if (last && last->first.value + last->count == s.value)
      ++last->count;
    else
      all.ranges.push_back({s, 1});
  }
  return all;
}

void keep_sent(Program& p) {
  for (ActorId actor : p.actors.ids()) {
    ActorProgram& a = p.actors[actor];
    std::vector<InstructionId> starts;  // of the actions, an overlap group as one
    std::vector<std::pair<TransferId, std::size_t>> sent;
    std::optional<ActionId> action;
    const auto turn = [&](const Run& r) {
      return r.action ? std::optional(turn_of(p.row(actor), *r.action)) : std::nullopt;
    };
    InstructionId at(0);
    for (const Instruction& i : a.code) {
      if (const Run* r = run_of(i); r && (starts.empty() || turn(*r) != action)) {
        starts.push_back(at);
        action = turn(*r);
      } else if (const auto t = sent_by(i)) {
        sent.push_back({*t, starts.size()});
      }
      ++at.value;
    }
    for (const auto& [transfer, after] : sent) {
      Transfer& t = p.transfers[transfer];
      const bool stays = !t.value() || after + 1 >= starts.size();
      t.released = stays ? a.code.next_id() : starts[after + 1];
    }
  }
}

}  // namespace stretto

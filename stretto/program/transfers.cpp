#include "stretto/program/transfers.h"

#include <fmt/format.h>

namespace stretto {

std::uint32_t Transfers::route(int source, int target, u64 bytes, std::string name) {
  const auto [it, fresh] = routes_.try_emplace({name, source, target}, std::uint32_t(p_.routes.size()));
  if (fresh) p_.routes.push_back({source, target, bytes, std::move(name)});
  return it->second;
}

std::uint32_t Transfers::add(Transfer t) {
  p_.transfers.push_back(std::move(t));
  return std::uint32_t(p_.transfers.size() - 1);
}

std::uint32_t Transfers::of_value(std::uint32_t value, int microbatch, int source, int target, bool direct) {
  const auto [it, fresh] = values_.try_emplace({value, microbatch, target}, std::uint32_t(p_.transfers.size()));
  if (!fresh) return it->second;
  const CrossValue& v = p_.step->values[value];
  Transfer t{.route = route(source, target, v.bytes, fmt::format("value {} {}", value, v.name)),
             .pieces = {{.bytes = v.bytes}},
             .direct = direct};
  t.value = value;
  t.microbatch = std::uint32_t(microbatch);
  return add(std::move(t));
}

std::uint32_t Transfers::of(Binding what, int source, int target, std::string_view kind) {
  const Step& s = *p_.step;
  const u64 bytes = s.bytes(what.place == Place::param ? s.params[what.index] : s.accumulators[what.index].type);
  Transfer t{.route = route(source, target, bytes, fmt::format("{} {}", kind, what.index)),
             .pieces = {{.bytes = bytes}}};
  t.what = what;
  return add(std::move(t));
}

std::uint32_t Transfers::of_squares(std::vector<std::uint32_t> params, int source, int target) {
  Transfer t;
  t.route = route(source, target, 8 * params.size(), fmt::format("squared norms of {}", source));
  t.pieces.assign(params.size(), {.bytes = 8});
  t.squares = std::move(params);
  return add(std::move(t));
}

void keep_sent(Program& p) {
  for (ActorProgram& a : p.actors) {
    std::vector<std::uint32_t> starts;  // of the actions
    std::vector<std::pair<std::uint32_t, std::size_t>> sent;
    std::uint32_t action = ~0u;
    for (std::uint32_t i = 0; i < a.code.size(); ++i) {
      if (const Run* r = std::get_if<Run>(&a.code[i]); r && (starts.empty() || r->action != action)) {
        starts.push_back(i);
        action = r->action;
      } else if (const Send* s = std::get_if<Send>(&a.code[i])) {
        sent.push_back({s->transfer, starts.size()});
      }
    }
    for (const auto& [transfer, behind] : sent) {
      Transfer& t = p.transfers[transfer];
      const bool stays = t.value == ~0u || behind + 1 >= starts.size();
      t.released = stays ? std::uint32_t(a.code.size()) : starts[behind + 1];
    }
  }
}

}  // namespace stretto

#include "stretto/program/order.h"

#include <algorithm>

namespace stretto {
namespace {

class Play {
 public:
  explicit Play(Program& p)
      : p_(p), at_(p.actors.size(), 0), known_(p.actors.size(), Known(p.actors.size(), 0)), sent_(p.transfers.size()) {
    direct_.resize(p.actors.size());
    for (std::size_t a = 0; a < p.actors.size(); ++a) find_direct(a);
  }

  std::vector<Fault> run() {
    // Actors that can go on; one that stops at a receive is woken by the message it waits for.
    std::vector<std::uint32_t> ready;
    std::vector<std::uint32_t> waiting(p_.transfers.size(), nobody);
    for (std::uint32_t a = 0; a < p_.actors.size(); ++a) ready.push_back(a);
    while (!ready.empty()) {
      const std::uint32_t a = ready.back();
      ready.pop_back();
      for (const auto& code = p_.actors[a].code; at_[a] < code.size(); ++at_[a]) {
        const Instruction& i = code[at_[a]];
        known_[a][a] = std::uint32_t(at_[a]);
        if (std::holds_alternative<Run>(i)) {
          for (std::uint32_t t : direct_[a][at_[a]]) post(a, t);
        } else if (const Send* s = std::get_if<Send>(&i)) {
          send(a, s->transfer);
          if (waiting[s->transfer] != nobody) ready.push_back(waiting[s->transfer]);
        } else if (const Receive* r = std::get_if<Receive>(&i)) {
          const std::uint32_t t = r->transfer;
          if (sent_[t].empty()) {
            waiting[t] = a;
            break;
          }
          for (std::size_t b = 0; b < known_[a].size(); ++b) known_[a][b] = std::max(known_[a][b], sent_[t][b]);
          sent_[t] = {};
        }
      }
    }
    return faults();
  }

 private:
  using Known = std::vector<std::uint32_t>;  // per actor: instructions surely done
  static constexpr std::uint32_t nobody = ~0u;

  // Which transfers a run writes straight into another actor's memory: those of the sends behind it.
  void find_direct(std::size_t a) {
    const auto& code = p_.actors[a].code;
    direct_[a].resize(code.size());
    std::size_t last_run = 0;
    for (std::size_t i = 0; i < code.size(); ++i) {
      if (std::holds_alternative<Run>(code[i])) last_run = i;
      const Send* s = std::get_if<Send>(&code[i]);
      if (s && p_.transfers[s->transfer].direct) direct_[a][last_run].push_back(s->transfer);
    }
  }
  void post(std::uint32_t a, std::uint32_t t) {
    p_.transfers[t].posted = known_[a][std::size_t(p_.routes[p_.transfers[t].route].target)];
  }
  void send(std::uint32_t a, std::uint32_t t) {
    if (!p_.transfers[t].direct) post(a, t);
    sent_[t] = known_[a];
  }

  std::vector<Fault> faults() const {
    std::vector<Fault> all;
    for (std::size_t a = 0; a < p_.actors.size(); ++a)
      if (at_[a] < p_.actors[a].code.size())
        all.push_back(fault(fmt::format("program, actor {}", a), "give the schedule another order",
                            "waits forever at instruction {}: {}", at_[a], p_.str(p_.actors[a].code[at_[a]])));
    for (std::size_t t = 0; t < sent_.size() && all.empty(); ++t)
      if (!sent_[t].empty())
        all.push_back(fault("program", "", "'{}' is sent and never received", p_.routes[p_.transfers[t].route].name));
    return all;
  }

  Program& p_;
  std::vector<std::size_t> at_;
  std::vector<Known> known_;                                     // per actor
  std::vector<Known> sent_;                                      // per transfer under way: what its sender knew
  std::vector<std::vector<std::vector<std::uint32_t>>> direct_;  // per actor, per instruction
};

}  // namespace

std::vector<Fault> settle_order(Program& p) { return Play(p).run(); }

}  // namespace stretto

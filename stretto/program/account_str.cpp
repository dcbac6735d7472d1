#include <algorithm>

#include "stretto/base/pack.h"
#include "stretto/base/text.h"
#include "stretto/program/account.h"
#include "stretto/program/frozen.h"

namespace stretto {
namespace {

using Kind = Holding::Kind;

// "3", "0 to 4", "0 2 5"
std::string numbers(const std::vector<MicrobatchId>& sorted) {
  std::vector<std::string> runs;
  for (std::size_t i = 0, j = 0; i < sorted.size(); i = j) {
    for (j = i + 1; j < sorted.size() && sorted[j].value == sorted[j - 1].value + 1;) ++j;
    if (j - i > 2)
      runs.push_back(fmt::format("{} to {}", sorted[i].value, sorted[j - 1].value));
    else
      for (std::size_t k = i; k < j; ++k) runs.push_back(fmt::format("{}", sorted[k].value));
  }
  return join(runs, " ");
}

std::string peaks_str(const std::vector<ActorAccount>& accounts) {
  std::string text;
  for (std::size_t a = 0; a < accounts.size(); ++a) {
    const ActorAccount& x = accounts[a];
    text += fmt::format("\nactor {}: most alive in {}\n", a, x.moment.empty() ? "no action" : x.moment);
    std::vector<std::vector<std::string>> rows{{"bytes", "what", "stage", "microbatches"}};
    for (const Holding& h : x.peak)
      rows.push_back({human_bytes(h.bytes), std::string(name_of(h.kind)),
                      h.stage ? fmt::format("{}", h.stage->value) : "-", numbers(h.microbatches)});
    rows.push_back({human_bytes(x.fragmentation), "free between buffers", "", ""});
    text += table(rows);
    if (x.kept > 0)
      text += fmt::format(
          "kept between actions: at most {}, after {}; temporaries, messages, gaps and scratch beside it {}, "
          "{:.1f}%\n",
          human_bytes(x.kept), x.kept_after, human_bytes(x.beside()), 100.0 * x.beside() / x.kept);
  }
  return text;
}

// What each task holds while it runs: values it reads, values it makes for others, and the most of its own temporaries.
std::string tasks_str(const Program& p) {
  std::vector<std::vector<std::string>> rows{{"task", "reads", "keeps for others", "temporaries", "workspace"}};
  const auto total = [&](const auto& bindings) {
    u64 bytes = 0;
    for (const Binding& b : bindings)
      if (const ValueId* v = as<ValueId>(b)) bytes += p.step->values[*v].bytes;
    return human_bytes(bytes);
  };
  for (TaskId t : p.step->tasks.ids()) {
    const Task& task = p.step->tasks[t];
    if (task.part > Part::W) continue;
    std::vector<Lifetime> own;
    for (const BodyBuffer& b : p.calls[t]->buffers)
      if (b.temporary() && b.touched) own.push_back({b.bytes, b.touched->first.value, b.touched->last.value});
    rows.push_back({fmt::format("{} {}", name_of(task.part), task.piece.value_or(PieceId(0)).value), total(task.inputs),
                    total(task.outputs), human_bytes(live_bound(own)), human_bytes(p.calls[t]->scratch)});
  }
  return table(rows);
}

}  // namespace

std::string_view name_of(Kind k) {
  constexpr std::string_view names[] = {"F keeps until I",
                                        "F keeps until W",
                                        "I keeps for W",
                                        "R keeps for I",
                                        "messages waiting",
                                        "temporaries",
                                        "gathered or to be scattered"};
  return names[static_cast<int>(k)];
}

u64 ActorAccount::bytes(Kind kind) const {
  u64 sum = 0;
  for (const Holding& h : peak)
    if (h.kind == kind) sum += h.bytes;
  return sum;
}
u64 ActorAccount::beside() const { return planned + scratch - std::min(kept, planned); }

std::string Program::memory_str() const {
  const std::vector<ActorAccount> accounts = account(*this);
  const auto any = [&](Arena k) { return std::ranges::any_of(actors, [k](const auto& a) { return a.bytes[k] > 0; }); };
  const bool frozen = any(Arena::frozen), undo = any(Arena::kept);
  const std::string shared = shared_str(*this);
  std::vector<std::vector<std::string>> rows{{"actor", "weights"}};
  if (frozen) rows[0].push_back("frozen");
  for (const char* what : {"gradients", "optimizer", "activations", "gathered", "temporaries", "messages", "gaps",
                           "scratch", "batch, results"})
    rows[0].push_back(what);
  if (undo) rows[0].push_back("kept");
  rows[0].push_back("total");
  for (ActorId a : actors.ids()) {
    const ActorAccount& x = accounts[a.value];
    const auto arena = [&](Arena k) { return actors[a].bytes[k]; };
    u64 total = 0;
    for (u64 b : actors[a].bytes) total += b;
    if (!shared.empty()) total -= arena(Arena::frozen);
    std::vector<u64> cells{arena(Arena::params)};
    if (frozen) cells.push_back(arena(Arena::frozen));
    for (u64 n : {arena(Arena::gradients), arena(Arena::state),
                  x.live - x.bytes(Kind::waiting) - x.bytes(Kind::temporary) - x.bytes(Kind::storage),
                  x.bytes(Kind::storage), x.bytes(Kind::temporary), x.bytes(Kind::waiting), x.fragmentation,
                  arena(Arena::scratch), arena(Arena::inputs) + arena(Arena::results)})
      cells.push_back(n);
    if (undo) cells.push_back(arena(Arena::kept));
    cells.push_back(total);
    rows.push_back({fmt::format("{}", a.value)});
    for (u64 n : cells) rows.back().push_back(human_bytes(n));
  }
  const std::string ranks =
      ranks_per_actor() > 1 ? fmt::format("Of each of an actor's {} ranks, {}.\n", ranks_per_actor(), mesh.str()) : "";
  return table(rows) + ranks + (shared.empty() ? "" : "Totals are without the " + shared + " of a machine.\n") +
         "Activations, gathered parameters and gradients on their way, temporaries, messages and the gaps between "
         "them: when the most is alive.\n" +
         (undo ? "Kept: weights and optimizer as they were before each of the two steps that may be under way.\n"
               : "") +
         peaks_str(accounts) + "\nEach task, one microbatch:\n" + tasks_str(*this);
}

}  // namespace stretto

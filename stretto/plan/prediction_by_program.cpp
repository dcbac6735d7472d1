// The last depth of a prediction: the program itself.
#include <algorithm>
#include <functional>

#include "stretto/plan/inner/prediction.h"
#include "stretto/program/account.h"
#include "stretto/simulate/held.h"

namespace stretto {
namespace {

MemoryParts memory_of(const ActorAccount& account, const PerArena<u64>& bytes) {
  MemoryParts m;
  m.params = bytes[Arena::params] + bytes[Arena::frozen];
  m.gradients = bytes[Arena::gradients];
  m.state = bytes[Arena::state];
  using Kind = Holding::Kind;
  for (const Kind kind : {Kind::until_i, Kind::until_w, Kind::for_w, Kind::for_i}) m.activations += account.bytes(kind);
  m.messages = account.bytes(Kind::waiting);
  m.beside = account.bytes(Kind::temporary) + account.bytes(Kind::storage) + bytes[Arena::scratch] +
             bytes[Arena::inputs] + bytes[Arena::results];
  m.gaps = account.fragmentation;
  return m;
}

}  // namespace

Planned compiled_plan(const PlanProblem& p, RunKeys k, std::optional<GraphOfRank> graph) {
  Planned r{.keys = std::move(k), .exact = Exactness::program};
  try {
    const Compiled c = compile_keys(p, r.keys, graph ? *std::move(graph) : graph_of_keys(p, r.keys));
    const Program& program = *c.program;
    const StepTime step = step_time(program, p.cluster.cluster);
    r.seconds = step.seconds;
    r.time = step.spent;
    // As by the schedule: sums and update are none.
    r.bubble = std::max(0.0, step.bubble - (step.seconds - step.last) / step.seconds);
    r.keys.stages = program.pieces_per_stage();
    const std::vector<Held> ranks = held(program, p.cluster.cluster);
    const auto fullest = std::max_element(ranks.begin(), ranks.end(),
                                          [](const Held& a, const Held& b) { return a.bytes() < b.bytes(); });
    const ActorId actor(fullest - ranks.begin());
    r.bytes = fullest->bytes();
    r.memory = memory_of(account(program, actor), program.actors[actor].bytes);
    adjust(r.memory, *fullest);
    r.program = c.program;
  } catch (const Error& e) {
    if (e.kind() == Error::Kind::bug) throw;
    r.refused = e.faults().empty() ? e.what() : e.faults().front().what;
  }
  return r;
}

std::shared_ptr<const Program> program_of(const PlanProblem& p, const Planned& x) {
  return x.program ? x.program : compile_keys(p, x.keys, graph_of_keys(p, x.keys)).program;
}

Planned Predictor::by_program(const RunKeys& k) { return by_program(std::vector{k}).front(); }

std::vector<Planned> Predictor::by_program(const std::vector<RunKeys>& all) {
  using Graph = std::pair<const RunKeys, std::optional<GraphOfRank>>;
  std::vector<Graph*> graphs, fresh;
  for (const RunKeys& k : all) {
    const auto [it, added] = graphs_.try_emplace(keys_of_graph(k));
    graphs.push_back(&*it);
    if (added) fresh.push_back(&*it);
  }
  each_(fresh.size(), [&](std::size_t i) {
    try {
      fresh[i]->second = graph_of_keys(p_, fresh[i]->first);
    } catch (const Error&) {  // said again by its programs
    }
  });
  std::vector<Planned> results(all.size());
  std::vector<std::size_t> order;  // the longest first, so that none of them is left alone at the end
  for (std::size_t i = 0; i < all.size(); ++i) order.push_back(i);
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t i) { return all[i].microbatches; });
  each_(all.size(),
        [&](std::size_t n) { results[order[n]] = compiled_plan(p_, all[order[n]], graphs[order[n]]->second); });
  return results;
}

}  // namespace stretto

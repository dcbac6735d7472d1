#include "stretto/simulate/held.h"

#include <algorithm>
#include <map>

#include "stretto/ir/op.h"

namespace stretto {

double workspace(const Cluster& c, double scratch) { return c.machine.rates ? c.stack.reserve : scratch; }

double kept_beside(const Program& p, TaskId task, const Stack& stack) {
  const Task& t = p.step->tasks[task];
  const Recompute mode = p.step->recompute.empty() ? Recompute::none : p.step->recompute[*t.piece];
  if (mode == Recompute::full || mode == Recompute::layer) return 0;
  double bytes = 0;
  if (stack.kept && mode == Recompute::none)
    for (const KernelCall& call : p.calls[task]->calls) {
      const Node& n = p.calls[task]->graph.node(call.node);
      const Cost cost = n.op->cost({p.calls[task]->graph, n});
      if (const auto* a = std::get_if<AttentionShape>(&cost.shape))
        bytes += a->heads * a->queries * a->keys * stack.scores_kept;
    }
  // A half layer hands on as many elements as it adds: so do the embedding and the layers' last one.
  if (stack.masks > 0)
    for (const Binding& b : t.outputs)
      if (const ValueId* v = as<ValueId>(b); v && p.step->values[*v].producer == task) {
        const auto next = [&](TaskId c) {
          const Task& reader = p.step->tasks[c];
          return reader.part == Part::F && reader.piece != t.piece;
        };
        const std::vector<TaskId>& readers = p.step->values[*v].consumers;
        if (std::any_of(readers.begin(), readers.end(), next))
          bytes += stack.masks * double(p.step->elements(p.step->values[*v].type));
      }
  return bytes;
}

namespace {

// The most of it that an actor has at one time.
double most_kept_beside(const Program& p, ActorId actor, const Stack& stack) {
  if (!stack.kept && stack.masks == 0) return 0;
  std::map<TaskId, double> of_task;
  std::map<PieceId, double> of_piece;
  double now = 0, most = 0;
  for (const Instruction& i : p.actors[actor].code) {
    const Run* r = begun_by(i);
    if (!r || !r->action) continue;
    const Task& t = p.task(*r);
    if (t.part == Part::F) {
      const auto [it, fresh] = of_task.try_emplace(r->task);
      if (fresh) of_piece[*t.piece] = it->second = kept_beside(p, r->task, stack);
      most = std::max(most, now += it->second);
    } else if (t.part == Part::I || (t.part == Part::W && !p.step->find(Part::I, *t.piece))) {
      now -= of_piece[*t.piece];
    }
  }
  return most;
}

}  // namespace

std::vector<Held> held(const Program& p, const Cluster& c) {
  std::vector<Held> all;
  const Stack& stack = c.stack;
  const double gradients = stack.gradient_bytes > 0 ? stack.gradient_bytes / double(size_of(f32)) : 1;
  for (ActorId actor : p.actors.ids()) {
    const PerArena<u64>& bytes = p.actors[actor].bytes;
    const auto of = [&](Arena a) { return static_cast<double>(bytes[a]); };
    Held h{.states = of(Arena::params) + of(Arena::gradients) * gradients + of(Arena::state),
           .activations = of(Arena::inputs) + of(Arena::results) + of(Arena::activations)};
    h.activations += workspace(c, of(Arena::scratch));
    h.activations += most_kept_beside(p, actor, stack);
    all.push_back(h);
  }
  return all;
}

}  // namespace stretto

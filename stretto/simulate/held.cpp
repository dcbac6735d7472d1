#include "stretto/simulate/held.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "stretto/ir/op.h"

namespace stretto {

double workspace(const Cluster& c, double scratch) { return c.machine.rates ? c.stack.reserve : scratch; }

namespace {

// Calls of a shape, in a task.
template <class Shape, class Use>
void for_each(const Calls& calls, Use use) {
  for (const KernelCall& call : calls.calls) {
    const Node& n = calls.graph.node(call.node);
    if (n.op->collective) continue;
    const Cost cost = n.op->cost({calls.graph, n});
    if (const auto* shape = std::get_if<Shape>(&cost.shape)) use(*shape);
  }
}

double kept_scores(const Calls& calls, const Stack& stack) {
  double bytes = 0;
  for_each<AttentionShape>(calls,
                           [&](const AttentionShape& a) { bytes += a.heads * a.queries * a.keys * stack.scores_kept; });
  return bytes;
}

// Values that a task makes and one of the readers wants.
template <class Wanted>
std::vector<const CrossValue*> made_for(const Step& s, TaskId task, Wanted wanted) {
  std::vector<const CrossValue*> made;
  for (const Binding& b : s.tasks[task].outputs)
    if (const ValueId* v = as<ValueId>(b); v && s.values[*v].producer == task) {
      const std::vector<TaskId>& readers = s.values[*v].consumers;
      if (std::any_of(readers.begin(), readers.end(), [&](TaskId c) { return wanted(s.tasks[c]); }))
        made.push_back(&s.values[*v]);
    }
  return made;
}

std::vector<const CrossValue*> made_for_next(const Step& s, TaskId task) {
  return made_for(s, task, [&](const Task& t) { return t.part == Part::F && t.piece != s.tasks[task].piece; });
}

double bytes_of(const std::vector<const CrossValue*>& values) {
  double bytes = 0;
  for (const CrossValue* v : values) bytes += double(v->bytes);
  return bytes;
}

TaskId id_of(const Step& s, const Task* t) { return TaskId(t - &*s.tasks.begin()); }

// Kept: every second product's result, attention's result, and one input per layer.
double kept_of_products(const Program& p, TaskId task) {
  const Step& s = *p.step;
  double elements = 0;
  for_each<ProductShape>(*p.calls[task], [&](const ProductShape& x) { elements += x.batches * x.m * x.n / 2; });
  for_each<AttentionShape>(*p.calls[task], [&](const AttentionShape& a) { elements += a.heads * a.queries * a.value; });
  const std::vector<const CrossValue*> next = made_for_next(s, task);
  const double size = next.empty() ? double(size_of(bf16)) : double(size_of(next[0]->type.dtype));
  return elements * size + bytes_of(next) / 2;
}

// What the program keeps: all products' results and the input of both halves.
double kept_by_program(const Step& s, TaskId task) {
  return bytes_of(made_for(s, task, [](const Task& t) { return t.part >= Part::R && t.part <= Part::W; }));
}

bool has_head(const Program& p, const Task& t) { return t.piece->value + 1 == p.step->pieces; }
Recompute recompute_of(const Program& p, PieceId piece) {
  return p.step->recompute.empty() ? Recompute::none : p.step->recompute[piece];
}

// Of a layer that is recomputed as a whole the first half's result is not kept, unless another stage has it.
double kept_of_layers(const Program& p, TaskId task) {
  const PieceId piece = *p.step->tasks[task].piece;
  const bool first_half = piece.value % 2 == 1 && piece.value + 2 < p.step->pieces;
  const bool here = first_half && p.stage_of[piece] == p.stage_of[PieceId(piece.value + 1)];
  return here ? -bytes_of(made_for_next(*p.step, task)) : 0;
}

}  // namespace

bool keeps_products(const Stack& stack, Recompute r) {
  return stack.selective == Stack::Selective::products && r == Recompute::selective;
}

bool keeps_its_own(const Stack& s) {
  return s.kept || s.masks > 0 || s.whole_layers || s.selective == Stack::Selective::products;
}

double kept_products(const Program& p, TaskId t) { return has_head(p, p.step->tasks[t]) ? 0 : kept_of_products(p, t); }

double kept_beside(const Program& p, TaskId task, const Stack& stack) {
  const Task& t = p.step->tasks[task];
  const Recompute mode = recompute_of(p, *t.piece);
  if (mode == Recompute::full) return 0;
  if (mode == Recompute::layer) return stack.whole_layers ? kept_of_layers(p, task) : 0;
  double bytes = 0;
  if (keeps_products(stack, mode) && !has_head(p, t))
    bytes += std::min(kept_of_products(p, task) - kept_by_program(*p.step, task), 0.0);
  if (stack.kept && mode == Recompute::none) bytes += kept_scores(*p.calls[task], stack);
  // A half layer hands on as many elements as it adds: so do the embedding and the layers' last one.
  if (stack.masks > 0)
    for (const CrossValue* v : made_for_next(*p.step, task)) bytes += stack.masks * double(p.step->elements(v->type));
  return bytes;
}

void MostAtOnce::keep(double bytes, double while_it_runs) {
  now += bytes;
  if (std::abs(now + while_it_runs) > std::abs(most)) most = now + while_it_runs;
}

namespace {

// The most that an actor has at one time of what forward tasks keep for backward: the program's own peak is then. The
// model's last task may need more while it runs.
template <class Kept>
double most_kept(const Program& p, ActorId actor, Kept kept, double head = 0) {
  std::map<TaskId, double> of_task;
  std::map<PieceId, double> of_piece;
  MostAtOnce all;
  for (const Instruction& i : p.actors[actor].code) {
    const Run* r = begun_by(i);
    if (!r || !r->action) continue;
    const Task& t = p.task(*r);
    if (t.part == Part::F) {
      const auto [it, fresh] = of_task.try_emplace(r->task);
      if (fresh) of_piece[*t.piece] = it->second = kept(r->task);
      all.keep(it->second, has_head(p, t) ? head : 0);
    } else if (t.part == Part::I || (t.part == Part::W && !p.step->find(Part::I, *t.piece))) {
      all.drop(of_piece[*t.piece]);
    }
  }
  return all.most;
}

double most_kept_beside(const Program& p, ActorId actor, const Stack& stack) {
  if (!keeps_its_own(stack)) return 0;
  return most_kept(p, actor, [&](TaskId t) { return kept_beside(p, t, stack); });
}

bool gathers(const Program& p) {
  const auto& tasks = p.step->tasks;
  return std::any_of(tasks.begin(), tasks.end(), [](const Task& t) { return t.part == Part::U; });
}

// Parameters of the piece that is at work and of the next one.
double gathered(const Program& p) {
  std::vector<double> of_pieces{0, 0};
  for (TaskId t : p.step->tasks.ids())
    if (p.step->tasks[t].part == Part::U)
      of_pieces.push_back(bytes_of(made_for(*p.step, t, [](const Task&) { return true; })));
  std::partial_sort(of_pieces.begin(), of_pieces.begin() + 2, of_pieces.end(), std::greater());
  return of_pieces[0] + of_pieces[1];
}

}  // namespace

double logits_of(const Program& p) {
  double count = 0;
  if (const Task* head = p.step->find(Part::F, PieceId(p.step->pieces - 1)))
    for_each<ProductShape>(*p.calls[id_of(*p.step, head)],
                           [&](const ProductShape& x) { count += x.batches * x.m * x.n; });
  return count;
}

Held held_under(const Cluster& c, const PlannedBytes& b, const KeptByStack& k) {
  const Stack& stack = c.stack;
  const double gradients = b.gradients * (stack.gradient_bytes > 0 ? stack.gradient_bytes / double(size_of(f32)) : 1);
  const double cut = stack.memory.context ? k.context : 1;
  const bool by_context = !k.gathers && k.data == 1 && cut > 1;
  Held h{.states = ((stack.memory.copies ? b.params : 0) + gradients + b.state) / cut,
         .activations = b.batch + workspace(c, b.scratch)};
  // The program recomputes a stage at once, the stack a layer at a time: neither peak bounds the other.
  h.activations += k.products ? *k.products : b.activations + k.beside + stack.memory.logits * k.logits;
  // What is gathered once a step: gradients are whole until then, and parameters where the program does not gather
  // them.
  if (stack.keeps_gathered && k.pipeline)
    h.activations += k.gathers ? gradients * k.data : by_context ? gradients + b.params : 0;
  h.states *= stack.memory.reserved;
  h.activations *= stack.memory.reserved;
  return h;
}

std::vector<Held> held(const Program& p, const Cluster& c) {
  std::vector<Held> all;
  const Stack& stack = c.stack;
  const PieceId head(p.step->pieces - 1);
  const double logits = logits_of(p), loss = bytes_of_loss(stack, logits);
  for (ActorId actor : p.actors.ids()) {
    const PerArena<u64>& bytes = p.actors[actor].bytes;
    const auto of = [&](Arena a) { return static_cast<double>(bytes[a]); };
    KeptByStack k{.logits = p.actor_of(head) == actor ? logits : 0,
                  .gathers = gathers(p),
                  .data = 1.0 * p.mesh.extent("data"),
                  .context = 1.0 * p.mesh.extent("context"),
                  .pipeline = p.actors.size() > 1};
    if (keeps_products(stack, recompute_of(p, head)))
      k.products = most_kept(
                       p, actor, [&](TaskId t) { return kept_products(p, t); }, loss) +
                   gathered(p);
    else
      k.beside = most_kept_beside(p, actor, stack);
    all.push_back(held_under(c,
                             {.params = of(Arena::params) + of(Arena::frozen),
                              .gradients = of(Arena::gradients),
                              .state = of(Arena::state),
                              .batch = of(Arena::inputs) + of(Arena::results),
                              .scratch = of(Arena::scratch),
                              .activations = of(Arena::activations)},
                             k));
  }
  return all;
}

}  // namespace stretto

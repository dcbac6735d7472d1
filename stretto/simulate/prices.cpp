#include "stretto/simulate/prices.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "stretto/fuse/cost.h"

namespace stretto {
namespace {

// What is known of these calls; what is not is found.
template <class List, class Find>
const auto& found(List& known, CallRange calls, Find find) {
  for (const auto& x : known)
    if (x.calls.from == calls.from && x.calls.to == calls.to) return x.is;
  return known.emplace_back(typename List::value_type{calls, find()}).is;
}

// The last ranks of a context axis see nearly all keys; where positions are dealt out, every rank sees half of them.
void balance_context(KernelWork& w) {
  const auto* a = std::get_if<AttentionShape>(&w.cost.shape);
  if (a && a->seen > 0.5 && a->seen < 1) w.cost.flops *= 0.5 / a->seen;
}

// With as many bytes as fewer elements have.
CollectiveShape in_parts(CollectiveShape s, i64 parts) {
  if (s.rows) s.rows->elements /= parts;
  if (!s.sizes.empty()) *std::max_element(s.sizes.begin(), s.sizes.end()) /= parts;
  return s;
}
CollectiveShape of_bytes(const CollectiveShape& s) { return in_parts(s, i64(size_of(s.dtype))); }

Value without_views(const Graph& g, Value v) {
  while (g.node(v).op->view) v = g.node(v).operands[0];
  return v;
}

bool share_an_operand(const Graph& g, const Node& a, const Node& b) {
  for (Value x : a.operands)
    for (Value y : b.operands)
      if (without_views(g, x) == without_views(g, y)) return true;
  return false;
}

// Bytes of a task's passes over elements, in parts of what the program moves.
double passes_of(const StackFactors& f, Part part) {
  return of_an_action(part) ? f.passes : part >= Part::norm ? f.update : 1;
}

}  // namespace

Prices::Prices(const Program& p, const Cluster& c)
    : p_(p),
      c_(placed(c, p.ranks())),
      f_(factors_of(c_, p.ranks())),
      times_(p, c),
      tasks_(p.actors.size()),
      messages_(p.routes.size()) {}

double Prices::collective(const CollectiveShape& s, ActorId actor) { return times_.collective(s, actor) * f_.all; }

Prices::OfTask& Prices::of(ActorId actor, TaskId task) {
  IdVector<TaskId, OfTask*>& all = tasks_[actor];
  if (all.empty()) all.resize(p_.step->tasks.size(), nullptr);
  OfTask*& known = all[task];
  if (!known) {
    const Task& t = p_.step->tasks[task];
    known = &kinds_[{&*p_.calls[task], actor, t.part, last(t), made_otherwise(t) ? t.piece : std::nullopt}];
  }
  return *known;
}

bool Prices::made_otherwise(const Task& t) const { return t.part == Part::R && (f_.full || f_.selective); }

const std::vector<Prices::Started>& Prices::started(ActorId actor, const Run& r) {
  return found(of(actor, r.task).started, calls_of(r, *p_.calls[r.task]), [&] { return find_started(actor, r); });
}

std::vector<Prices::Started> Prices::find_started(ActorId actor, const Run& r) {
  const Part part = p_.task(r).part;
  const Calls& body = *p_.calls[r.task];
  const bool sum = part == Part::sum || part == Part::S;
  const bool once = part == Part::S && f_.keeps_gathered && p_.actors.size() > 1;
  std::vector<Started> all;
  for (CallId c : ids(calls_of(r, body))) {
    CollectiveShape s = shape_of(body.graph, body.graph.node(body.calls[c].node), p_.mesh);
    if (narrow_gather(p_.task(r), s)) s = of_bytes(s);
    const double takes = collective(s, actor) * (sum && s.dtype == f32 ? f_.gradients : 1);
    const DeviceLane lane = f_.one_wire ? DeviceLane::storage : lane_of(part);
    all.push_back(
        {takes / (once ? p_.microbatches : 1), wires_.try_emplace({lane, s.axes}, wires_.size()).first->second});
  }
  return all;
}

Priced Prices::task(ActorId actor, TaskId task) {
  std::optional<Priced>& whole = of(actor, task).whole;
  if (!whole) whole = of_task(actor, task);
  return *whole;
}

Priced Prices::of_task(ActorId actor, TaskId task) {
  if (made_otherwise(p_.step->tasks[task])) return recomputed(actor, task);
  const Calls& body = *p_.calls[task];
  return calls(actor, task, body, {CallId(0), CallId(body.calls.size())});
}

// What the stack makes again is not what the program does: all of a piece's forward, or attention alone.
Priced Prices::recomputed(ActorId actor, TaskId task) {
  const Task& t = p_.step->tasks[task];
  const Recompute mode = p_.step->recompute.empty() ? Recompute::full : p_.step->recompute[*t.piece];
  const Task* forward = p_.step->find(Part::F, *t.piece);
  STRETTO_ASSERT(forward, "a piece without forward makes nothing again");
  const TaskId f(forward - &*p_.step->tasks.begin());
  const Priced all = this->task(actor, f);
  if (const auto& parts = mode == Recompute::selective ? f_.selective : f_.full)
    return {.products = all.products * parts->products,
            .attention = all.attention * parts->attention,
            .elements = all.elements * parts->elements,
            .collectives = all.collectives * parts->collectives};
  const Calls& body = *p_.calls[task];
  return calls(actor, task, body, {CallId(0), CallId(body.calls.size())});
}

Priced Prices::part(ActorId actor, const Run& r) {
  return found(of(actor, r.task).parts, *r.calls, [&] { return calls(actor, r.task, *p_.calls[r.task], *r.calls); });
}

// Of the last piece: what its product makes.
double Prices::logits_of(const Calls& body) const {
  double count = 0;
  for (CallId c : body.calls.ids()) {
    if (f_.loss == 0 || body.graph.node(body.calls[c].node).op->collective) continue;
    const Cost cost = kernel_work(body, c).cost;
    if (const auto* p = std::get_if<ProductShape>(&cost.shape)) count += p->batches * p->m * p->n;
  }
  return count;
}

double Prices::of_loss(double logits) const {
  KernelWork passes;
  passes.cost.read = f_.loss * logits;
  return kernel_seconds(passes, c_.machine) * f_.all;
}

// Parameters of layers, and what tensor ranks gather for their products. Those of embedding and head are as they are.
bool Prices::narrow_gather(const Task& t, const CollectiveShape& s) const {
  if (!f_.narrow_gathers || !c_.machine.rates || c_.machine.rates->narrow <= 1) return false;
  const bool layer = t.piece && t.piece->value > 0 && t.piece->value + 1 < p_.step->pieces;
  const bool operand = of_an_action(t.part) && s.axes == std::vector<std::string>{"tensor"};
  return layer && s.kind == CollectiveKind::gather && (t.part == Part::U || operand);
}

// What a product takes as a part of one with all that are made of the same operand, in parts of what it takes alone:
// the side in which they differ is as long as all of theirs.
double Prices::joined(const Calls& body, CallRange range, CallId call, const ProductShape& p, bool narrow) const {
  if (!f_.joined_products || !c_.machine.rates) return 1;
  double m = 0, n = 0;
  for (CallId c : ids(range)) {
    const Node &mine = body.graph.node(body.calls[call].node), &other = body.graph.node(body.calls[c].node);
    if (other.op->collective) continue;
    const Cost cost = kernel_work(body, c).cost;
    const auto* q = std::get_if<ProductShape>(&cost.shape);
    if (!q || q->batches != p.batches || q->k != p.k || !share_an_operand(body.graph, mine, other)) continue;
    if (q->m == p.m) n += q->n;
    if (q->n == p.n) m += q->m;
  }
  const Rates& r = *c_.machine.rates;
  const double small = r.small * (narrow ? r.narrow : 1), side = n > p.n ? p.n : p.m, all = n > p.n ? n : m;
  return (1 + small / all) / (1 + small / side);
}

// Tensor ranks that exchange the same rows.
int Prices::alike_over_tensor(const Graph& g, const Node& n) const {
  for (DimId d : g.type(n.operands[0]).dims)
    if (std::ranges::count(g.dim(d).axes, "tensor") > 0) return 1;
  return p_.mesh.extent("tensor");
}

// Each of the ranks that hold the same rows exchanges a part of them; they gather what came.
double Prices::cut_exchange(const CollectiveShape& s, ActorId actor, int alike) {
  const double rows = collective_bytes(s) * s.members / (s.members - 1);
  return collective(in_parts(s, alike), actor) + rows * (alike - 1) / alike / c_.inside.bandwidth * f_.all;
}

Priced Prices::calls(ActorId actor, TaskId task, const Calls& body, CallRange range) {
  const Task& t = p_.step->tasks[task];
  // The head's products stay in 16 bits where others are made in fewer.
  const bool narrow = of_an_action(t.part) && !last(t);
  const double logits = t.part == Part::F && !narrow ? logits_of(body) : 0;  // where the stack has a loss of its own
  Priced sum;
  for (CallId c : ids(range)) {
    const Node& n = body.graph.node(body.calls[c].node);
    if (n.op->collective) {
      CollectiveShape shape = shape_of(body.graph, n, p_.mesh);
      if (narrow_gather(t, shape)) shape = of_bytes(shape);
      const bool exchanges = shape.exchanges();
      const int alike = exchanges && f_.cut_exchanges ? alike_over_tensor(body.graph, n) : 1;
      const double takes = alike > 1 ? cut_exchange(shape, actor, alike) : collective(shape, actor);
      sum.collectives += takes * (exchanges ? f_.exchanges : f_.tensor);
      continue;
    }
    KernelWork work = kernel_work(body, c);
    work.narrow = narrow;
    if (f_.balanced_context) balance_context(work);
    const WorkKind kind = kind_of(work);
    if (logits > 0 && kind == WorkKind::product) sum.elements += of_loss(logits);
    if (logits > 0 && kind == WorkKind::elements && work.cost.read + work.cost.written >= logits) continue;
    if (kind == WorkKind::elements && c_.machine.rates)
      for (double* bytes : {&work.cost.read, &work.cost.written}) *bytes *= passes_of(f_, t.part);
    double seconds = kernel_seconds(work, c_.machine) * f_.all;
    if (const auto* p = std::get_if<ProductShape>(&work.cost.shape)) seconds *= joined(body, range, c, *p, narrow);
    (kind == WorkKind::product ? sum.products : kind == WorkKind::attention ? sum.attention : sum.elements) += seconds;
  }
  return sum;
}

// Ranks of an actor that hold the same value.
int Prices::copies_of(const Transfer& t) const {
  const SentValue* sent = t.value();
  if (!sent) return 1;
  std::set<std::string> over;
  for (DimId d : p_.step->values[sent->value].type.dims)
    for (const std::string& axis : p_.step->dims[d.value].axes) over.insert(axis);
  int copies = p_.ranks_per_actor();
  for (const std::string& axis : over) copies /= p_.mesh.extent(axis);
  return copies;
}

Prices::Message Prices::message(TransferId id) {
  const Transfer& t = p_.transfers[id];
  std::optional<Message>& known = messages_[t.route];
  if (!known) known = find_message(t);
  return *known;
}

Prices::Message Prices::find_message(const Transfer& t) const {
  const Route& route = p_.routes[t.route];
  const Link own = link(c_, p_.rank_of(route.source, 0), p_.rank_of(route.target, 0));
  const Link l = for_messages(own, c_, f_, f_.cut_messages ? copies_of(t) : 1);
  return {.wire = double(route.bytes) / l.bandwidth, .latency = l.latency, .waits = f_.sender_waits};
}

}  // namespace stretto

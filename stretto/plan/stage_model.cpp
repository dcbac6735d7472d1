#include "stretto/plan/inner/stage_model.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace stretto {
namespace {

bool of_head(const StageFacts& f, int piece, int pieces) { return piece + f.head_parts >= pieces; }

const PieceFacts& facts_of_piece(const StageFacts& f, int piece, int pieces) {
  if (piece == 0) return f.embedding;
  if (of_head(f, piece, pieces)) return f.head;
  return piece % 2 == 1 ? f.attention : f.mlp;
}

}  // namespace

std::vector<PieceTimes> piece_times(const PlanProblem& p, const StageFacts& f) {
  std::vector<PieceTimes> all;
  for (int i = 0; i < p.pieces(); ++i) {
    const PieceFacts& x = facts_of_piece(f, i, p.pieces());
    const double back = std::max(x.B, x.gather_back + x.scatter);
    all.push_back({.F = std::max(x.F, x.gather), .R = x.R, .I = x.I - x.R, .W = back - x.I, .update = x.update});
  }
  return all;
}

std::vector<double> piece_work(const PlanProblem& p, const StageFacts& f) {
  std::vector<double> all;
  for (const PieceTimes& t : piece_times(p, f)) all.push_back(t.microbatch());
  return all;
}

StageModel::StageModel(const PlanProblem& p, const RunKeys& k, FactsOfStages all)
    : p_(p), k_(k), f_(std::move(all)), stack_(factors_of(p.cluster.cluster)) {
  int piece = 0;
  std::map<std::tuple<const StageFacts*, int, int>, StageId> alike;  // without ends, by how many pieces from which on
  all_.reserve(k.stages.size());
  for (std::size_t s = 0; s < k.stages.size(); ++s) {
    const int n = k.stages[s];
    const StageFacts& f = *f_[s];
    scratch_ = std::max(scratch_, f.scratch);
    if (piece > 0 && !of_head(f, piece + n - 1, p.pieces()))
      if (const auto [it, fresh] = alike.try_emplace({&f, n, piece % 2}, all_.next_id()); !fresh) {
        all_.push_back(PieceFacts(all_[it->second]));
        piece += n;
        continue;
      }
    PieceFacts sum = f.stage;
    PieceFacts first, last;  // an end's temporaries come and go before those of its layers
    int attention = 0, mlp = 0;
    for (int end = piece + n; piece < end; ++piece) {
      if (piece != 0 && !of_head(f, piece, p.pieces())) {
        ++(piece % 2 == 1 ? attention : mlp);
        continue;
      }
      const PieceFacts& x = facts_of_piece(f, piece, p.pieces());
      sum += x;
      sum.beside += x.for_w - x.beside, sum.beside_i += x.for_w - x.beside_i, sum.beside_w -= x.beside_w;
      (piece == 0 ? first : last) += x;
    }
    sum += f.attention * attention;
    sum += f.mlp * mlp;
    // Nobody waits for gradients of the only stage: whole ones of its weights are scattered layer by layer.
    if (k.stages.size() == 1 && k.zero >= 2 && k.recompute != Recompute::full)
      sum.beside = std::min(sum.beside, f.stage.beside + 2 * (f.attention.beside + f.mlp.beside));
    for (double PieceFacts::*x : {&PieceFacts::beside, &PieceFacts::beside_i, &PieceFacts::beside_w})
      sum.*x = std::max({sum.*x, first.*x, last.*x});
    all_.push_back(sum);
  }
  if (keeps_its_own(p.cluster.cluster.stack)) find_kept();
}

void StageModel::find_kept() {
  int piece = 0;
  for (std::size_t s = 0; s < k_.stages.size(); ++s) {
    PieceKept sum;
    for (const int end = piece + k_.stages[s]; piece < end; ++piece) {
      const PieceKept& x = f_[s]->kept->of(piece, p_.pieces());
      // A half layer's result is kept where the other half is on another stage.
      const bool cut = piece + 1 == end && k_.recompute_of(s) == Recompute::layer;
      sum.beside += cut ? 0 : x.beside, sum.products += x.products;
    }
    kept_.push_back(sum);
  }
}

// What stands in a row by itself takes its part of a turn.
PlayTimes StageModel::times(bool in_place) const {
  PlayTimes t;
  int piece = 0;
  for (StageId s : all_.ids()) {
    const PieceFacts& x = all_[s];
    const auto rest = [](double all, double part) { return std::max(0.0, all - part); };
    const double i = in_place ? x.placed_I : x.I, b = in_place ? x.placed_I + x.placed_W : x.B;
    StageCost c{.F = in_place ? x.placed_F : x.F,
                .I = rest(i, x.R),
                .W = rest(b, i),
                .B = rest(b, x.R),
                .message_bytes = s.value + 1u < all_.size() ? f_[s.value]->message : 0};
    if (k_.recompute != Recompute::none) c.R = x.R;
    t.stages.push_back(c);
    t.given.push_back(c.I);
    if (k_.recompute_of(s.value) == Recompute::layer)  // the gradient that others wait for comes before the last W
      t.given[s] = rest(*c.B, facts_of_piece(*f_[s.value], piece, p_.pieces()).placed_W);
    if (stack_.joined_backward) t.given[s] = *c.B;
    piece += k_.stages[s.value];
  }
  t.sender_waits = stack_.sender_waits;
  t.handling = stack_.issue;
  add_sums(t);
  add_cut(t);
  return t;
}

bool StageModel::arranged() const { return p_.parallel.overlap != Overlap::none; }

void StageModel::add_sums(PlayTimes& t) const {
  int piece = 0;
  for (StageId s : all_.ids()) {
    const int n = k_.stages[s.value];
    t.sums.push_back({all_[s].sums, facts_of_piece(*f_[s.value], piece, p_.pieces()).sums, n});
    piece += n;
  }
  t.hidden_sums = stack_.hidden.sums;
}

// Each piece with its part of the stage's times. Where parameters stay whole, a step gathers them once; some stacks
// scatter gradients once, too.
void StageModel::add_cut(PlayTimes& t) const {
  t.hidden = {stack_.hidden.gathers, stack_.hidden.sums, stack_.hidden.beside};
  if (f_.front()->mlp.gather == 0 && f_.front()->mlp.scatter == 0) return;
  const double once = 1.0 / k_.microbatches;
  const bool whole = reshard_of(p_, k_) == Reshard::step;
  const double gathers = whole ? once : 1, gathers_back = whole ? 0 : 1;
  const double scatters = stack_.keeps_gathered && k_.pipe > 1 ? once : 1;
  int piece = 0;
  for (StageId s : all_.ids()) {
    WirePiece sum;
    t.again_at_once.push_back(k_.recompute_of(s.value) == Recompute::full);
    StorageWire::Pieces& wires = t.cut[StageId(t.cut.push_back({}))];
    for (const int end = piece + k_.stages[s.value]; piece < end; ++piece) {
      const PieceFacts& x = facts_of_piece(*f_[s.value], piece, p_.pieces());
      // In place: arranged, what W adds to I may be nothing at all.
      wires.push_back({x.placed_F, x.placed_I, x.placed_W, x.gather * gathers, x.gather_back * gathers_back,
                       x.scatter * scatters, x.add});
      sum.F += x.placed_F, sum.I += x.placed_I, sum.W += x.placed_W;
    }
    const auto share = [&](double one, double of) { return of > 0 ? one / of : 1.0 / double(wires.size()); };
    for (WirePiece& x : wires) x.F = share(x.F, sum.F), x.I = share(x.I, sum.I), x.W = share(x.W, sum.W);
  }
}

double StageModel::work() const {
  double sum = 0;
  for (const PieceFacts& x : all_) sum += x.work();
  return sum;
}

PieceFacts StageModel::busiest(const StagePlacement& actor_of) const {
  std::vector<double> work;
  for (const auto& pipe : actor_of)
    for (StageId s : pipe.ids()) {
      work.resize(std::max<std::size_t>(work.size(), pipe[s].value + 1));
      work[pipe[s].value] += all_[s].work();
    }
  const ActorId most(std::max_element(work.begin(), work.end()) - work.begin());
  PieceFacts sum;
  for (const auto& pipe : actor_of)
    for (StageId s : pipe.ids())
      if (pipe[s] == most) sum += all_[s];
  return sum * (1.0 / double(actor_of.size()));
}

PieceFacts StageModel::states_of(const Schedule& s, ActorId actor) const {
  PieceFacts sum;
  bool first = false, last = false;
  for (const auto& pipe : s.actor_of)
    for (StageId stage : pipe.ids()) {
      if (pipe[stage] != actor) continue;
      sum += all_[stage];
      first = first || stage.value == 0;
      last = last || stage.value + 1u == all_.size();
    }
  if (last && !first) sum.params += f_.back()->tied;  // facts count at the first piece what both ends read
  return sum;
}

double StageModel::update(const Schedule& s, ActorId actor) const { return states_of(s, actor).update; }

double StageModel::tail(const Schedule& s, ActorId actor) const {
  const PieceFacts sum = states_of(s, actor);
  // Sums go on beside the last microbatch's backward, and the last of them after it.
  const double stages =
      std::max<std::ptrdiff_t>(1, std::count(s.actor_of[down_pipe].begin(), s.actor_of[down_pipe].end(), actor));
  return sum.update + std::max(sum.sums - sum.B * (1 - 0.5 / stages), 0.0);
}

MemoryParts StageModel::memory(const Schedule& s, ActorId actor) const {
  const PieceFacts states = states_of(s, actor);
  double live = 0, kept = 0, beside = 0, most = 0;
  for (const Action& a : s.rows[actor]) {
    const PieceFacts& x = all_[a.stage];
    const double after = live + kept_after(a.phase, x), now = std::max(live, a.phase == Phase::F ? after : 0);
    const double with = a.phase == Phase::F   ? 0
                        : a.phase == Phase::I ? x.beside_i
                        : a.phase == Phase::W ? x.beside_w
                                              : x.beside;
    if (now + with > most) most = now + with, kept = now, beside = with;
    live = after;
  }
  return {.params = states.params,
          .gradients = states.gradients,
          .state = states.state,
          .activations = kept,
          .beside = beside + scratch_,
          .messages = s.actors() > 1 ? 2 * f_.front()->message : 0};
}

bool StageModel::keeps_products() const {
  return stretto::keeps_products(p_.cluster.cluster.stack, k_.recompute_of(k_.stages.size() - 1));
}

// Parameters of the piece that is at work and of the next one.
double StageModel::gathered() const {
  if (k_.zero < 3 || k_.data == 1) return 0;
  const StageFacts& f = *f_.front();
  std::vector<double> whole{f.embedding.params, f.head.params};
  whole.insert(whole.end(), {f.attention.params, f.mlp.params, f.attention.params, f.mlp.params});
  std::sort(whole.rbegin(), whole.rend());
  return k_.data * (whole[0] + whole[1]);
}

KeptByStack StageModel::kept_at_once(bool with_loss) const {
  KeptByStack k{.gathers = k_.zero == 3 && k_.data > 1, .data = 1.0 * k_.data, .context = 1.0 * k_.context};
  k.pipeline = k_.pipe > 1;
  if (with_loss && (p_.cluster.cluster.stack.memory.logits > 0 || keeps_products())) k.logits = f_.back()->kept->logits;
  return k;
}

KeptByStack StageModel::kept_by_stack(const Schedule& s, ActorId actor) const {
  const StageId head(all_.size() - 1);
  KeptByStack k = kept_at_once(
      std::any_of(s.actor_of.begin(), s.actor_of.end(), [&](const auto& pipe) { return pipe[head] == actor; }));
  if (kept_.empty()) return k;
  const double loss = bytes_of_loss(p_.cluster.cluster.stack, k.logits);
  MostAtOnce beside, products;
  for (const Action& a : s.rows[actor]) {
    const PieceKept& x = kept_[a.stage];
    if (a.phase == Phase::F) beside.keep(x.beside), products.keep(x.products, a.stage == head ? loss : 0);
    if (a.phase == Phase::I || a.phase == Phase::B) beside.drop(x.beside), products.drop(x.products);
  }
  k.beside = beside.most;
  if (keeps_products()) k.products = products.most + gathered();
  return k;
}

KeptByStack StageModel::kept_by_stack(Shape& shape, ActorId actor) const {
  KeptByStack k = kept_by_stack(shape.schedule(), actor);
  const Schedule* fewer = k.products ? shape.fewer() : nullptr;  // the rest is among what facts say is kept
  if (!fewer) return k;
  const KeptByStack before = kept_by_stack(*fewer, actor);
  *k.products += shape.rounds() * std::max(0.0, *k.products - *before.products);
  return k;
}

MemoryParts StageModel::under_stack(MemoryParts m, const KeptByStack& k) const {
  const PlannedBytes bytes{.params = m.params,
                           .gradients = m.gradients,
                           .state = m.state,
                           .scratch = scratch_,
                           .activations = m.total() - m.states() - scratch_};
  adjust(m, held_under(p_.cluster.cluster, bytes, k));
  return m;
}

MemoryParts StageModel::played_memory(Shape& shape, ActorId a) const {
  MemoryParts m = memory(shape.schedule(), a);
  if (const Schedule* fewer = shape.fewer())
    m.activations += shape.rounds() * std::max(0.0, m.activations - memory(*fewer, a).activations);
  KeptByStack k = kept_by_stack(shape, a);
  k.beside = 0;  // it is among what facts say is kept
  return under_stack(m, k);
}

MemoryParts StageModel::played_memory(Shape& shape) const {
  MemoryParts most;
  for (ActorId a : ids_until<ActorId>(shape.schedule().rows.size()))
    if (const MemoryParts m = played_memory(shape, a); m.total() > most.total()) most = m;
  return most;
}

MemoryParts StageModel::memory(const Shape& shape) const {
  const Schedule& s = shape.outline();
  MemoryParts most;
  for (const ActorId actor : some_actors(s)) {
    const PieceFacts sum = states_of(s, actor);
    const MostKept n = shape.in_flight(actor);
    double beside = 0, stages = 0, products = 0;
    bool with_loss = false;
    for (const auto& pipe : s.actor_of)
      for (StageId stage : pipe.ids()) {
        if (pipe[stage] != actor) continue;
        beside = std::max(beside, all_[stage].beside), ++stages;
        if (!kept_.empty()) products += kept_[stage].products;
        with_loss = with_loss || stage.value + 1u == all_.size();
      }
    KeptByStack k = kept_at_once(with_loss);
    if (keeps_products())
      k.products = n.until_i * products / stages + gathered() + bytes_of_loss(p_.cluster.cluster.stack, k.logits);
    const MemoryParts planned{
        .params = sum.params,
        .gradients = sum.gradients,
        .state = sum.state,
        .activations = (n.until_i * sum.kept_i + n.until_w * sum.kept_w + n.for_w * sum.for_w) / stages,
        .beside = beside + scratch_,
        .messages = s.actors() > 1 ? 2 * f_.front()->message : 0};
    if (const MemoryParts m = under_stack(planned, k); m.total() > most.total()) most = m;
  }
  return most;
}

void adjust(MemoryParts& m, const Held& h) {
  if (m.states() > 0) {
    const double factor = h.states / m.states();
    m.params *= factor, m.gradients *= factor, m.state *= factor;
  }
  m.activations = std::max(0.0, m.activations + h.bytes() - m.total());
}

double kept_after(Phase phase, const PieceFacts& x) {
  if (phase == Phase::F) return x.kept();
  if (phase == Phase::I) return x.for_w - x.kept_i;
  if (phase == Phase::W) return -x.for_w - x.kept_w;
  return phase == Phase::B ? -x.kept() : 0;
}

std::vector<ActorId> some_actors(const Schedule& s) {
  std::vector<ActorId> all{ActorId(0), ActorId(s.actors() / 2), ActorId(s.actors() - 1)};
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace stretto

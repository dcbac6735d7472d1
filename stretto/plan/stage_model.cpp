#include "stretto/plan/stage_model.h"

#include <algorithm>

namespace stretto {
namespace {

const PieceFacts& facts_of_piece(const StageFacts& f, int piece, int pieces) {
  if (piece == 0) return f.embedding;
  if (piece + 1 == pieces) return f.head;
  return piece % 2 == 1 ? f.attention : f.mlp;
}

// Of a program before its collectives are put beside other work (program/overlap.h), about: runs, messages, gathers,
// scatters with their additions.
double instructions_of(const PlanProblem& p, const RunKeys& k) {
  const bool cut = k.data > 1;
  double of_a_piece = k.recompute == Recompute::none ? 3 : 4;
  if (cut && k.zero >= 2) of_a_piece += 3;
  if (cut && k.zero == 3) of_a_piece += k.recompute == Recompute::full ? 6 : 4;
  return k.microbatches * (p.pieces() * of_a_piece + 4.0 * (k.stage_count() - 1));
}
// Have tasks collectives of their own?
bool talks(const RunKeys& k) { return k.tensor * k.context * k.expert > 1; }
constexpr double arranged_by_arrival = 10'000;  // the longest that are

}  // namespace

std::vector<double> piece_work(const PlanProblem& p, const StageFacts& f) {
  std::vector<double> all;
  for (int i = 0; i < p.pieces(); ++i) {
    const PieceFacts& x = facts_of_piece(f, i, p.pieces());
    all.push_back(std::max(x.F, x.gather) + std::max(x.B, x.gather_back + x.scatter));
  }
  return all;
}

StageModel::StageModel(const PlanProblem& p, const RunKeys& k, const StageFacts& f) : p_(p), k_(k), f_(f) {
  int piece = 0;
  for (const int n : k.stages) {
    PieceFacts sum = f.stage;
    double at_end = 0, at_end_i = 0, at_end_w = 0;  // an end's temporaries come and go before those of its layers
    for (int end = piece + n; piece < end; ++piece) {
      const PieceFacts& x = facts_of_piece(f, piece, p.pieces());
      sum += x;
      if (piece != 0 && piece + 1 != p.pieces()) continue;
      sum.beside += x.for_w - x.beside, sum.beside_i += x.for_w - x.beside_i, sum.beside_w -= x.beside_w;
      at_end = std::max(at_end, x.beside), at_end_i = std::max(at_end_i, x.beside_i);
      at_end_w = std::max(at_end_w, x.beside_w);
    }
    // Nobody waits for gradients of the only stage: whole ones of its weights are scattered layer by layer.
    if (k.stages.size() == 1 && k.zero >= 2 && k.recompute != Recompute::full)
      sum.beside = std::min(sum.beside, f.stage.beside + 2 * (f.attention.beside + f.mlp.beside));
    sum.beside = std::max(sum.beside, at_end), sum.beside_i = std::max(sum.beside_i, at_end_i);
    sum.beside_w = std::max(sum.beside_w, at_end_w);
    all_.push_back(sum);
  }
}

PlayTimes StageModel::times() const {
  const Stack& stack = p_.cluster.cluster.stack;
  PlayTimes t;
  for (StageId s : all_.ids()) {
    const PieceFacts& x = all_[s];
    const auto rest = [](double all, double part) { return std::max(0.0, all - part); };
    StageCost c{.F = x.F,
                .I = rest(x.given_in_B, x.R),
                .W = x.W,
                .B = rest(x.B, x.R),
                .message_bytes = s.value + 1u < all_.size() ? f_.message : 0};
    if (k_.recompute != Recompute::none) c.R = x.R;
    if (stack.joined_backward) c.I = *c.B;
    t.stages.push_back(c);
    t.f.push_back({x.given_in_FW, rest(x.FW, x.given_in_FW)});
    t.i.push_back({rest(x.given_in_B, x.R), rest(x.B, x.given_in_B)});
    t.alone.push_back(rest(x.I, x.R));
    t.groups.push_back({x.saved_in_FB, x.late_F_in_FB, x.late_B_in_FB});
    t.w.push_back(x.W);
  }
  const bool arranged = this->arranged();
  t.receives_first = arranged && instructions_of(p_, k_) > arranged_by_arrival;
  t.by_arrival = arranged && !t.receives_first;
  t.arranged = arranged && !stack.hidden.gathers && !stack.hidden.sums;
  t.late_adds = k_.recompute != Recompute::layer;
  t.sender_waits = stack.hidden.messages.has_value();
  t.handling = stack.floor / 2 * stack.factor;
  add_sums(t);
  add_cut(t);
  return t;
}

bool StageModel::arranged() const { return talks(k_) && p_.parallel.overlap != Overlap::none; }

PlayTimes StageModel::times_in_place() const {
  PlayTimes t = times();
  for (StageId s : all_.ids()) {
    const PieceFacts& x = all_[s];
    StageCost& c = t.stages[s];
    const double i = std::max(0.0, x.placed_I - c.R.value_or(0));
    c.F = x.placed_F, c.I = i, c.W = x.placed_W, c.B = i + x.placed_W;
    t.f[s] = {x.placed_F, x.placed_W}, t.i[s] = {i, x.placed_W};
    t.alone[s] = i, t.w[s] = x.placed_W;
    t.groups[s] = {};
  }
  t.receives_first = t.by_arrival = t.arranged = false;
  return t;
}

void StageModel::add_sums(PlayTimes& t) const {
  int piece = 0;
  for (StageId s : all_.ids()) {
    const int n = k_.stages[s.value];
    t.sums.push_back({all_[s].sums, facts_of_piece(f_, piece, p_.pieces()).sums, n});
    piece += n;
  }
  t.hidden_sums = p_.cluster.cluster.stack.hidden.sums;
}

// Each piece with its part of the stage's times.
void StageModel::add_cut(PlayTimes& t) const {
  const Stack& stack = p_.cluster.cluster.stack;
  t.hidden = {stack.hidden.gathers, stack.hidden.sums, stack.beside};
  t.again_at_once = k_.recompute == Recompute::full;
  if (f_.mlp.gather == 0 && f_.mlp.scatter == 0) return;
  // Where parameters stay whole, a step gathers them once; some stacks scatter gradients once, too.
  const double once = 1.0 / k_.microbatches;
  const bool whole = reshard_of(p_, k_) == Reshard::step;
  const double gathers = whole ? once : 1, scatters = stack.keeps_gathered && k_.pipe > 1 ? once : 1;
  int piece = 0;
  for (StageId s : all_.ids()) {
    WirePiece sum;
    StorageWire::Pieces& pieces = t.cut[StageId(t.cut.push_back({}))];
    for (const int end = piece + k_.stages[s.value]; piece < end; ++piece) {
      const PieceFacts& x = facts_of_piece(f_, piece, p_.pieces());
      pieces.push_back(
          {x.F, x.given_in_B, x.W, x.gather * gathers, whole ? 0 : x.gather_back, x.scatter * scatters, x.add});
      sum.F += x.F, sum.I += x.given_in_B, sum.W += x.W;
    }
    const auto share = [&](double one, double all) { return all > 0 ? one / all : 1.0 / double(pieces.size()); };
    for (WirePiece& x : pieces) x.F = share(x.F, sum.F), x.I = share(x.I, sum.I), x.W = share(x.W, sum.W);
  }
}

double StageModel::work() const {
  double sum = 0;
  for (const PieceFacts& x : all_) sum += x.F + x.B;
  return sum;
}

double StageModel::longest(const StagePlacement& actor_of) const {
  std::vector<double> load;
  for (const auto& pipe : actor_of)
    for (StageId s : pipe.ids()) {
      load.resize(std::max<std::size_t>(load.size(), pipe[s].value + 1));
      load[pipe[s].value] += (all_[s].F + all_[s].B) / double(actor_of.size());
    }
  return *std::max_element(load.begin(), load.end());
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
  if (last && !first) sum.params += f_.tied;  // facts count at the first piece what both ends read
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
          .beside = beside + f_.scratch,
          .messages = s.actors() > 1 ? 2 * f_.message : 0};
}

MemoryParts StageModel::played_memory(Shape& shape) const {
  const Schedule& s = shape.schedule();
  const Schedule* fewer = shape.fewer();
  MemoryParts most;
  for (ActorId a : ids_until<ActorId>(s.rows.size())) {
    MemoryParts m = memory(s, a);
    if (fewer) m.activations += shape.rounds() * std::max(0.0, m.activations - memory(*fewer, a).activations);
    if (m.total() > most.total()) most = m;
  }
  return most;
}

MemoryParts StageModel::memory(const Shape& shape) const {
  const Schedule& s = shape.outline();
  MemoryParts most;
  for (const ActorId actor : some_actors(s)) {
    const PieceFacts sum = states_of(s, actor);
    const MostKept n = shape.in_flight(actor);
    double beside = 0, stages = 0;
    for (const auto& pipe : s.actor_of)
      for (StageId stage : pipe.ids())
        if (pipe[stage] == actor) beside = std::max(beside, all_[stage].beside), ++stages;
    const MemoryParts m{.params = sum.params,
                        .gradients = sum.gradients,
                        .state = sum.state,
                        .activations = (n.until_i * sum.kept_i + n.until_w * sum.kept_w + n.for_w * sum.for_w) / stages,
                        .beside = beside + f_.scratch,
                        .messages = s.actors() > 1 ? 2 * f_.message : 0};
    if (m.total() > most.total()) most = m;
  }
  return most;
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

#include "stretto/plan/prediction.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "stretto/models/family.h"
#include "stretto/plan/cuts.h"
#include "stretto/plan/data_axis.h"
#include "stretto/program/account.h"
#include "stretto/simulate/held.h"
#include "stretto/simulate/predict.h"
#include "stretto/simulate/step_time.h"

namespace stretto {
namespace {

// Under the stack, as in simulate/prices.h: of what tensor ranks hold alike each may send a part, and a share may be
// hidden.
ActorLinks links_of(const PlanProblem& p, const RunKeys& k) {
  const int each = k.ranks() / k.pipe;
  const int copies = p.cluster.cluster.stack.cut_messages && !k.sequence ? k.tensor : 1;
  return [&p, each, copies](int from, int to) {
    const Cluster& c = p.cluster.cluster;
    Link l = link(c, from * each, to * each);
    if (copies > 1) {
      const double per_byte = 1 / l.bandwidth / copies + 1.0 * (copies - 1) / copies / c.inside.bandwidth;
      l = {l.latency + c.inside.latency * std::log2(copies), 1 / per_byte};
    }
    const double share = (1 - c.stack.hidden.messages.value_or(0)) * c.stack.factor;
    return Link{l.latency * share, share > 0 ? l.bandwidth / share : Link{}.bandwidth};
  };
}

// How much longer all of it takes on more nodes than facts are of.
double growth(const PlanProblem& p, int ranks, int of_facts) {
  const auto of = [&](int n) {
    const Cluster c = placed(p.cluster.cluster, n);
    return 1 + c.stack.growth * std::log2(std::max(1.0, double(n) / c.ranks_per_node));
  };
  return of(ranks) / of(of_facts);
}

// Squared norms go up a tree of actors and down again; tied weights' gradients and values between both ends.
double epilogue_messages(const PlanProblem& p, const RunKeys& k, const StageFacts& f) {
  if (k.pipe == 1) return 0;
  const ActorLinks links = links_of(p, k);
  double sum = 2 * std::ceil(std::log2(k.pipe)) * links(0, 1).latency;
  const Link ends = links(0, k.pipe - 1);
  const double wide = half(p) ? 2 : 1;
  if (f.tied > 0) sum += ends.seconds(f.tied * wide) + ends.seconds(f.tied);
  return sum;
}

MemoryParts memory_of(const ActorAccount& account, const PerArena<u64>& bytes) {
  MemoryParts m;
  m.params = bytes[Arena::params];
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

// The largest three.
std::string limit_of(const Spent& s, double seconds) {
  auto parts = s.parts();
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (std::size_t i = 0; i < 3; ++i)
    if (parts[i].second >= 0.03 * seconds)
      text += fmt::format("{}{} {:.0f}%", text.empty() ? "" : ", ", parts[i].first, 100 * parts[i].second / seconds);
  return text;
}

// What the software of the cluster holds more or less than the program plans.
void adjust(MemoryParts& m, const Held& h) {
  if (m.states() > 0) {
    const double factor = h.states / m.states();
    m.params *= factor, m.gradients *= factor, m.state *= factor;
  }
  m.activations = std::max(0.0, m.activations + h.bytes() - m.total());
}

}  // namespace

std::string_view name_of(Exactness e) {
  constexpr std::string_view names[] = {"bound", "stage", "schedule", "program"};
  return names[std::size_t(e)];
}

Each one_by_one() {
  return [](std::size_t n, const std::function<void(std::size_t)>& function) {
    for (std::size_t i = 0; i < n; ++i) function(i);
  };
}

Predictor::Predictor(const PlanProblem& p, Each each) : p_(p), each_(std::move(each)), links_(p.cluster.cluster) {}

void Predictor::learn(const std::vector<Variant>& variants) {
  std::vector<Variant> first;
  for (const Variant& v : variants)
    if (busy_links(v)) first.push_back(without_data(v));
  learn_plainly(first);
  learn_plainly(variants);
}

void Predictor::learn_plainly(const std::vector<Variant>& variants) {
  std::vector<std::pair<const Variant*, Known*>> fresh;
  for (const Variant& v : variants)
    if (const auto [it, added] = known_.try_emplace(v); added) fresh.push_back({&it->first, &it->second});
  if (fresh.empty()) return;
  each_(fresh.size(), [&](std::size_t i) {
    try {
      const Variant& v = *fresh[i].first;
      const StageFacts* plain = nullptr;
      if (busy_links(v))
        if (const Known& k = known_.at(without_data(v)); k.facts) plain = &*k.facts;
      fresh[i].second->facts = facts_of(p_, v, plain);
    } catch (const Error& e) {
      fresh[i].second->refused = e.faults().empty() ? e.what() : e.faults().front().what;
    }
  });
}

const StageFacts* Predictor::facts(const Variant& v) {
  learn({v});
  const Known& k = known_.at(v);
  return k.facts ? &*k.facts : nullptr;
}

const std::string& Predictor::refusal(const Variant& v) { return known_.at(v).refused; }

double Predictor::flops() {
  if (!flops_) {
    const auto of = [&](int times) {
      const ModelConfig m = shortened(p_.model, times);
      return step_flops(*compile(make_model(m, 1), p_.optimizer, training_of(p_, {}), {}).program);
    };
    const double one = of(1), two = of(2), layers = shortened(p_.model, 1).layers;
    flops_ = p_.batch * (one + (two - one) / layers * (double(p_.model.layers) - layers));
  }
  return *flops_;
}

namespace {

// When the last actor has updated. The norm of all gradients is waited for where they are clipped.
double after(const PlayedEnds& ends, const StageModel& model, const Schedule& s, bool together) {
  double end = 0, summed = 0, update = 0;
  for (ActorId a : ids_until<ActorId>(s.rows.size())) {
    const double takes = model.update(s, a);
    end = std::max(end, ends.summed[a.value] + takes);
    summed = std::max(summed, ends.summed[a.value]), update = std::max(update, takes);
  }
  return together ? summed + update : end;
}

bool splits_backward(const Schedule& s) {
  return std::any_of(s.rows.begin(), s.rows.end(), [](const Row& row) {
    return std::any_of(row.begin(), row.end(), [](const Action& a) { return a.phase == Phase::W; });
  });
}

// Where no actor waits for the others at the end of a step.
double longest_alone(const PlayedEnds& ends) {
  double longest = 0;
  for (std::size_t a = 0; a < ends.last.size(); ++a) longest = std::max(longest, ends.last[a] - ends.first[a]);
  return longest;
}

}  // namespace

// One model of time and memory: closed form, or with the schedule played.
Planned Predictor::of_model(const RunKeys& k, const StageFacts& f, int of_facts, bool play) {
  Planned r{.keys = k, .exact = play ? Exactness::schedule : Exactness::stage};
  const Stack& stack = p_.cluster.cluster.stack;
  const StageModel model(p_, k, f);
  Shape& shape = shapes_.of(k);
  const Schedule& s = play ? shape.schedule() : shape.outline();
  double tail = 0;
  for (ActorId a : some_actors(s)) tail = std::max(tail, model.tail(s, a));
  const double busy = k.microbatches * model.longest(s.actor_of);
  double makespan = busy * shape.unit() / (3.0 * k.microbatches);
  if (play) {
    const bool alone = stack.free_update && splits_backward(s);
    const auto play_with = [&](const PlayTimes& times) {
      const PlayedEnds ends = shape.ends(times, links_of(p_, k));
      if (alone) return std::pair(longest_alone(ends), tail);
      const double last = *std::max_element(ends.last.begin(), ends.last.end());
      return std::pair(last, after(ends, model, s, p_.training.clip > 0 && !p_.training.clip_late) - last);
    };
    auto best = play_with(model.times());
    if (model.arranged())
      if (const auto other = play_with(model.times_in_place()); other.first + other.second < best.first + best.second)
        best = other;
    std::tie(makespan, tail) = best;
  }
  const double grown = growth(p_, k.ranks(), of_facts);
  r.time.work = grown * std::min(busy, makespan);
  r.time.bubble = grown * makespan - r.time.work;
  r.time.tail = grown * (tail + f.before + epilogue_messages(p_, k, f)) + stack.step;
  r.seconds = r.time.total();
  r.bubble = std::max(0.0, 1 - k.microbatches * model.work() / k.pipe / r.seconds - r.time.tail / r.seconds);
  r.memory = play ? model.played_memory(shape) : model.memory(shape);
  r.bytes = r.memory.total();
  return r;
}

const std::vector<int>& Predictor::cuts(const RunKeys& k, const StageFacts& f) {
  if (!p_.parallel.stages.empty()) return p_.parallel.stages;  // given
  std::vector<int>& stages = cuts_[{&f, k.stage_count()}];
  if (stages.empty()) stages = even_stages(piece_work(p_, f), k.stage_count());
  return stages;
}

Planned Predictor::by_stages(const RunKeys& keys, bool play) {
  const Variant v = variant_of(p_, keys);
  const StageFacts* base = facts(without_data(v));
  if (!base) return {.keys = keys, .exact = Exactness::stage, .refused = refusal(without_data(v))};
  return by_stages(keys, *base, play);
}

Planned Predictor::by_stages(const RunKeys& keys, const StageFacts& base, bool play) {
  RunKeys k = keys;
  if (k.stages.empty()) k.stages = cuts(k, base);
  Planned r = of_model(k, with_data(p_, base, variant_of(p_, k), links_), k.tensor * k.context * k.expert, play);
  r.exact = Exactness::stage;
  return r;
}

Planned Predictor::by_schedule(const RunKeys& keys) {
  RunKeys k = keys;
  const Variant v = variant_of(p_, k);
  const StageFacts* f = facts(v);
  if (!f) return {.keys = k, .exact = Exactness::schedule, .refused = refusal(v)};
  if (k.stages.empty()) k.stages = cuts(k, *f);
  return of_model(k, *f, k.ranks() / k.pipe, true);
}

Planned Predictor::with_better_cuts(Planned best) {
  constexpr std::ptrdiff_t most_nodes = 3'000'000;  // of all plays together
  constexpr int most_moves = 200;
  const StageFacts* f = facts(variant_of(p_, best.keys));
  if (!f || best.keys.stage_count() < 2 || !p_.parallel.stages.empty()) return best;
  const std::ptrdiff_t each = std::max<std::ptrdiff_t>(1, shapes_.of(best.keys).nodes());
  std::ptrdiff_t left = std::min<std::ptrdiff_t>(most_moves, most_nodes / each);
  const int stages = best.keys.stage_count();
  // Whole sweeps over all neighbours, until one of them changes nothing.
  for (bool moved = true; moved && left > 0;) {
    moved = false;
    for (int at = 0; at < 2 * (stages - 1) && left > 0; ++at) {
      const int from = at % 2 == 0 ? at / 2 : at / 2 + 1, to = at % 2 == 0 ? at / 2 + 1 : at / 2;
      if (best.keys.stages[from] < 2) continue;
      RunKeys k = best.keys;
      --k.stages[from], ++k.stages[to], --left;
      Planned x = of_model(k, *f, k.ranks() / k.pipe, true);
      if (x.seconds >= best.seconds * (1 - 1e-4)) continue;
      best = std::move(x);
      moved = true;
    }
  }
  return best;
}

Planned compiled_plan(const PlanProblem& p, RunKeys k) {
  Planned r{.keys = std::move(k), .exact = Exactness::program};
  try {
    const Compiled c = compile_keys(p, r.keys);
    const Program& program = *c.program;
    const StepTime step = step_time(program, p.cluster.cluster);
    r.seconds = step.seconds;
    r.bubble = step.bubble;
    r.time.tail = step.seconds - step.last;
    r.time.work = std::min(step.worked, step.last);
    r.time.bubble = step.last - r.time.work;
    r.limit = limit_of(step.spent, r.seconds);
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
  return x.program ? x.program : compile_keys(p, x.keys).program;
}

Planned Predictor::by_program(const RunKeys& k) { return compiled_plan(p_, k); }

std::vector<Planned> Predictor::by_program(const std::vector<RunKeys>& all) {
  std::vector<Planned> results(all.size());
  each_(all.size(), [&](std::size_t i) { results[i] = compiled_plan(p_, all[i]); });
  return results;
}

}  // namespace stretto

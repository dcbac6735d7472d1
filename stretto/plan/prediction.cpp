#include "stretto/plan/inner/prediction.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "stretto/balance/even_stages.h"
#include "stretto/cost/factors.h"
#include "stretto/models/family.h"
#include "stretto/plan/inner/data_axis.h"
#include "stretto/simulate/predict.h"

namespace stretto {
namespace {

ActorLinks links_of(const PlanProblem& p, const RunKeys& k) {
  const int each = k.ranks() / k.pipe;
  const StackFactors f = factors_of(p.cluster.cluster);
  const int copies = f.cut_messages && !k.sequence ? k.tensor : 1;
  return [&p, each, f, copies](int from, int to) {
    const Cluster& c = p.cluster.cluster;
    return for_messages(link(c, from * each, to * each), c, f, copies);
  };
}

// How much longer all of it takes on more nodes than facts are of.
double growth(const PlanProblem& p, int ranks, int of_facts) {
  const auto of = [&](int n) { return factors_of(placed(p.cluster.cluster, n), n).all; };
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
  std::vector<std::pair<const Variant*, Known*>> fresh;
  for (const Variant& v : variants)
    if (const auto [it, added] = known_.try_emplace(v); added) fresh.push_back({&it->first, &it->second});
  if (fresh.empty()) return;
  each_(fresh.size(), [&](std::size_t i) {
    try {
      fresh[i].second->facts = facts_of(p_, *fresh[i].first);
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

std::string Predictor::refusal(const RunKeys& k) const {
  Variant v = variant_of(p_, k);
  for (const Recompute r : by_what_is_kept) {
    v.recompute = r;
    if (const auto it = known_.find(v); it != known_.end() && !it->second.refused.empty()) return it->second.refused;
  }
  return "";
}

double model_flops(const PlanProblem& p) {
  if (p.graph) {
    Parallel whole;
    whole.purpose = Purpose::sizes;
    return step_flops(*compile(p.graph->model, p.optimizer, training_of(p, {}), whole).program);
  }
  const auto of = [&](int times) {
    const ModelConfig m = shortened(p.model, times);
    return step_flops(*compile(make_model(m, 1), p.optimizer, training_of(p, {}), {}).program);
  };
  const double one = of(1), two = of(2), layers = shortened(p.model, 1).layers;
  return p.batch * (one + (two - one) / layers * (double(p.model.layers) - layers));
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

// Of a microbatch's work that takes so long: what are not kernels are collectives that are waited for.
Spent spent(const PieceFacts& f, double seconds) {
  const double kernels = f.products + f.attention + f.elements, most = kernels > seconds ? seconds / kernels : 1;
  return {.products = f.products * most,
          .attention = f.attention * most,
          .elements = f.elements * most,
          .collectives = std::max(0.0, seconds - kernels)};
}

}  // namespace

// When a step's last action ends, and how long it goes on after that.
struct Predictor::Played {
  double last = 0, tail = 0;
  double total() const { return last + tail; }
};

Predictor::Played Predictor::judged(const StageModel& model, const Schedule& s, double tail,
                                    const PlayedEnds& ends) const {
  if (factors_of(p_.cluster.cluster).free_update && splits_backward(s)) return {longest_alone(ends), tail};
  const double last = *std::max_element(ends.last.begin(), ends.last.end());
  return {last, after(ends, model, s, p_.training.clip > 0 && !p_.training.clip_late) - last};
}

// In place or arranged, whichever is shorter.
Predictor::Played Predictor::by_actions(const StageModel& model, const RunKeys& k, Shape& shape, double tail) const {
  const auto play = [&](bool in_place) {
    return judged(model, shape.schedule(), tail, shape.ends(model.times(in_place), links_of(p_, k)));
  };
  Played best = play(false);
  if (model.arranged())
    if (const Played other = play(true); other.total() < best.total()) best = other;
  return best;
}

// One model of time and memory: closed form, or with the schedule played.
Planned Predictor::of_model(const RunKeys& k, const FactsOfStages& all, int of_facts, Shape& shape, bool play) const {
  Planned r{.keys = k, .exact = play ? Exactness::schedule : Exactness::stage};
  const double beside = factors_of(p_.cluster.cluster).step;
  const StageFacts& f = *all.front();
  const StageModel model(p_, k, all);
  const Schedule& s = play ? shape.schedule() : shape.outline();
  double about = 0;  // how long it goes on after the last action
  for (ActorId a : some_actors(s)) about = std::max(about, model.tail(s, a));
  const PieceFacts busiest = model.busiest(s.actor_of);
  const double busy = k.microbatches * busiest.work();
  Played played{busy * shape.unit() / (3.0 * k.microbatches), about};
  if (play) played = by_actions(model, k, shape, about);
  const double grown = growth(p_, k.ranks(), of_facts);
  const double messages = epilogue_messages(p_, k, f);
  const double tail = grown * (played.tail + f.before + messages) + beside;
  r.seconds = grown * played.last + tail;
  r.time = spent(busiest * (grown * k.microbatches), grown * std::min(busy, played.last));
  r.time.messages = grown * messages;
  r.time.update = std::min(tail - r.time.messages, grown * (busiest.update + f.before) + beside);
  r.time.sums = tail - r.time.messages - r.time.update;
  (k.pipe > 1 ? r.time.bubble : r.time.gathers) = grown * std::max(0.0, played.last - busy);
  r.bubble = std::max(0.0, 1 - k.microbatches * model.work() / k.pipe / r.seconds - tail / r.seconds);
  r.memory = play ? model.played_memory(shape) : model.memory(shape);
  r.bytes = r.memory.total();
  return r;
}

const std::vector<int>& Predictor::cuts(const RunKeys& k, const StageFacts& f) {
  if (!p_.parallel.stages.empty()) return p_.parallel.stages;  // given
  const std::vector<double> work = piece_work(p_, f);
  std::vector<int>& stages = cuts_[{{work.front(), work[1], work[2], work.back()}, k.stage_count()}];
  if (stages.empty()) stages = even_stages(work, k.stage_count());
  return stages;
}

// Stages that make more again than others take longer for the same pieces.
std::vector<int> Predictor::cuts(const RunKeys& k, const FactsOfStages& f, const std::vector<int>& most) {
  if ((k.recompute_each.empty() && most.empty()) || !p_.parallel.stages.empty()) return cuts(k, *f.front());
  std::map<const StageFacts*, std::vector<double>> work;
  std::vector<StageRoom> rooms(f.size());
  for (std::size_t s = 0; s < f.size(); ++s) {
    std::vector<double>& w = work[f[s]];
    if (w.empty()) w = piece_work(p_, *f[s]);
    rooms[s].seconds = &w;
    if (!most.empty()) rooms[s].most = most[s];
  }
  return even_stages(rooms);
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
  const StageFacts f = with_data(p_, base, variant_of(p_, k), links_);
  Planned r = of_model(k, FactsOfStages(k.stages.size(), &f), k.tensor * k.context * k.expert, shapes_.of(k), play);
  r.exact = Exactness::stage;
  return r;
}

std::vector<Planned> Predictor::by_stages(const std::vector<const RunKeys*>& all, const StageFacts& base) {
  struct Staged {
    const std::vector<int>* stages;
    StageFacts facts;
    Shape* shape;
  };
  std::vector<Staged> ready;
  std::map<int, const std::vector<int>*> even;  // by their number
  for (const RunKeys* k : all) {
    const auto [it, fresh] = even.try_emplace(k->stage_count());
    if (fresh) it->second = &cuts(*k, base);
    ready.push_back({it->second, with_data(p_, base, variant_of(p_, *k), links_), &shapes_.of(*k)});
  }
  std::vector<Planned> results(all.size());
  each_(all.size(), [&](std::size_t i) {
    RunKeys k = *all[i];
    if (k.stages.empty()) k.stages = *ready[i].stages;
    const FactsOfStages f(k.stages.size(), &ready[i].facts);
    results[i] = of_model(k, f, k.tensor * k.context * k.expert, *ready[i].shape, false);
  });
  return results;
}

Ready Predictor::ready(const RunKeys& keys) {
  Ready r{keys, facts_of_stages(keys)};
  if (r.facts.empty()) return r;
  if (r.keys.stages.empty()) r.keys.stages = cuts(keys, r.facts);
  r.shape = &shapes_.of(r.keys);
  return r;
}

Planned Predictor::by_schedule(const Ready& r) const {
  if (r.facts.empty()) return {.keys = r.keys, .exact = Exactness::schedule, .refused = refusal(r.keys)};
  return of_model(r.keys, r.facts, r.keys.ranks() / r.keys.pipe, *r.shape, true);
}

Planned Predictor::by_schedule(const RunKeys& k) { return by_schedule(ready(k)); }

// Those that share a schedule go one after the other: they are played on one tape.
std::vector<Planned> Predictor::by_schedule(const std::vector<Ready>& all) const {
  std::vector<Planned> results(all.size());
  std::map<std::tuple<std::string_view, int, int>, std::vector<std::size_t>> places;
  for (std::size_t i = 0; i < all.size(); ++i)
    places[{all[i].keys.schedule, all[i].keys.pipe, all[i].keys.chunks}].push_back(i);
  std::vector<const std::vector<std::size_t>*> rows;
  for (const auto& [schedule, row] : places) rows.push_back(&row);
  each_(rows.size(), [&](std::size_t n) {
    for (const std::size_t i : *rows[n]) results[i] = by_schedule(all[i]);
  });
  return results;
}

std::optional<Planned> Predictor::with_better_cuts(const RunKeys& keys, double bytes) {
  if (keys.pipe == 1 || !p_.parallel.stages.empty()) return std::nullopt;
  constexpr std::ptrdiff_t most_actions = 2'000'000;  // that are played: a tenth of a second
  Ready r = ready(keys);
  if (r.facts.empty()) return std::nullopt;
  CutProblem problem{.bytes = std::vector<double>(p_.pieces() - 1, r.facts.front()->message),
                     .link = links_of(p_, keys)(0, 1),
                     .first = r.keys.stages};
  problem.allowed = [&](const std::vector<int>& stages) {
    RunKeys k = r.keys;
    k.stages = stages;
    return StageModel(p_, k, r.facts).played_memory(*r.shape).total() <= bytes;
  };
  std::vector<const StageFacts*> kinds;
  for (const StageFacts* f : r.facts) {
    const auto known = std::ranges::find(kinds, f);
    problem.kind.push_back(int(known - kinds.begin()));
    if (known != kinds.end()) continue;
    kinds.push_back(f);
    problem.pieces.push_back(piece_times(p_, *f));
  }
  const ChosenCuts chosen = choose_cuts(problem, r.shape->validated(), most_actions);
  std::vector<int> stages(keys.stage_count(), 0);
  for (const int stage : chosen.stage_of) ++stages[stage];
  if (stages == r.keys.stages || !std::isfinite(chosen.seconds)) return std::nullopt;
  r.keys.stages = std::move(stages);
  return by_schedule(r);
}

FactsOfStages Predictor::facts_of_stages(const RunKeys& k) {
  Variant v = variant_of(p_, k);
  const StageFacts* first = facts(v);
  FactsOfStages all(first ? k.stage_count() : 0, first);
  for (std::size_t s = 0; s < all.size() && !k.recompute_each.empty(); ++s) {
    v.recompute = k.recompute_each[s];
    all[s] = facts(v);
    if (!all[s]) return {};
  }
  return all;
}

}  // namespace stretto

#include "stretto/plan/prediction.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "stretto/models/family.h"
#include "stretto/plan/arranged.h"
#include "stretto/plan/cuts.h"
#include "stretto/plan/data_axis.h"
#include "stretto/plan/turn_memory.h"
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

std::string Predictor::refusal(const RunKeys& k) {
  Variant v = variant_of(p_, k);
  for (const Recompute r : by_what_is_kept) {
    v.recompute = r;
    if (const auto it = known_.find(v); it != known_.end() && !it->second.refused.empty()) return it->second.refused;
  }
  return "";
}

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

// When a step's last action ends, and how long it goes on after that.
struct Predictor::Played {
  double last = 0, tail = 0;
  std::optional<Arrangement> way = {};  // none: in place
  double total() const { return last + tail; }
};

Predictor::Played Predictor::judged(const StageModel& model, const Schedule& s, double tail,
                                    const PlayedEnds& ends) const {
  if (p_.cluster.cluster.stack.free_update && splits_backward(s)) return {longest_alone(ends), tail};
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

// In the ways that the compiler tries, of which it takes the next one if that is worth it.
Predictor::Played Predictor::by_turns(const StageModel& model, Shape& shape, ArrangedPlayer& player,
                                      double tail) const {
  const auto play = [&](const std::optional<Arrangement>& way) {
    Played x =
        judged(model, shape.schedule(), tail, shape.ends([&](const Schedule& s) { return player.ends(s, way); }));
    x.way = way;
    return x;
  };
  Played best = play({});
  for (const Arrangement& way : arrangements(model.tasks()))
    if (const Played other = play(way); other.total() < worth_arranging * best.total()) best = other;
  return best;
}

ArrangedPlayer Predictor::player_of(const StageModel& model, const RunKeys& k, double message) const {
  return {model.pieces(), model.turn_options(), links_of(p_, k), message};
}
bool Predictor::stays_whole(const RunKeys& k) const { return reshard_of(p_, k) == Reshard::step; }

// With everything in place.
void Predictor::count_memory(Planned& x, const FactsOfStages& all, Shape& shape) const {
  const StageModel model(p_, x.keys, all);
  ArrangedPlayer player = player_of(model, x.keys, all.front()->message);
  x.memory = memory_by_turns(model, shape, player, {}, stays_whole(x.keys));
  x.bytes = x.memory.total();
}

// One model of time and memory: closed form, or with the schedule played.
Planned Predictor::of_model(const RunKeys& k, const FactsOfStages& all, int of_facts, Shape& shape, Depth depth) const {
  const bool play = depth != Depth::stages;
  Planned r{.keys = k, .exact = play ? Exactness::schedule : Exactness::stage};
  const Stack& stack = p_.cluster.cluster.stack;
  const StageFacts& f = *all.front();
  const StageModel model(p_, k, all);
  const Schedule& s = play ? shape.schedule() : shape.outline();
  double tail = 0;
  for (ActorId a : some_actors(s)) tail = std::max(tail, model.tail(s, a));
  const double busy = k.microbatches * model.longest(s.actor_of);
  Played played{busy * shape.unit() / (3.0 * k.microbatches), tail};
  std::optional<ArrangedPlayer> player;
  if (depth == Depth::turns) player = player_of(model, k, f.message);
  if (play) played = player ? by_turns(model, shape, *player, tail) : by_actions(model, k, shape, tail);
  const double grown = growth(p_, k.ranks(), of_facts);
  r.time.work = grown * std::min(busy, played.last);
  r.time.bubble = grown * played.last - r.time.work;
  r.time.tail = grown * (played.tail + f.before + epilogue_messages(p_, k, f)) + stack.step;
  r.seconds = r.time.total();
  r.bubble = std::max(0.0, 1 - k.microbatches * model.work() / k.pipe / r.seconds - r.time.tail / r.seconds);
  if (player)
    r.memory = memory_by_turns(model, shape, *player, played.way, stays_whole(k));
  else
    r.memory = play ? model.played_memory(shape) : model.memory(shape);
  r.bytes = r.memory.total();
  return r;
}

Planned Predictor::of_model(const RunKeys& k, const FactsOfStages& all, int of_facts, Depth depth) {
  return of_model(k, all, of_facts, shapes_.of(k), depth);
}

std::vector<Planned> Predictor::by_turns(const std::vector<RunKeys>& all) {
  std::vector<Planned> results;
  struct Ready {
    std::size_t at;
    FactsOfStages facts;
    Shape* shape;
  };
  std::vector<Ready> ready;
  const bool arranges = p_.parallel.overlap != Overlap::none;
  for (const RunKeys& k : all) {
    FactsOfStages f = facts_of_stages(k);
    if (f.empty()) {
      results.push_back(by_schedule(k));
    } else {
      // Without turns that are ordered anew the schedule says what it takes.
      Planned& x = results.emplace_back(arranges ? Planned{.keys = k} : by_schedule(k));
      if (x.keys.stages.empty()) x.keys.stages = cuts(k, f);
      Shape& shape = shapes_.of(x.keys);
      shape.schedule(), shape.fewer();  // made here: several may play one shape at a time below
      ready.push_back({results.size() - 1, std::move(f), &shape});
    }
  }
  each_(ready.size(), [&](std::size_t i) {
    Planned& x = results[ready[i].at];
    if (!arranges) return count_memory(x, ready[i].facts, *ready[i].shape);
    const RunKeys k = x.keys;
    x = of_model(k, ready[i].facts, k.ranks() / k.pipe, *ready[i].shape, Depth::turns);
  });
  for (Planned& x : results) x.turns = true;
  return results;
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
  Planned r = of_model(k, FactsOfStages(k.stages.size(), &f), k.tensor * k.context * k.expert,
                       play ? Depth::schedule : Depth::stages);
  r.exact = Exactness::stage;
  return r;
}

Planned Predictor::by_schedule(const RunKeys& keys) {
  RunKeys k = keys;
  const FactsOfStages f = facts_of_stages(k);
  if (f.empty()) return {.keys = k, .exact = Exactness::schedule, .refused = refusal(k)};
  if (k.stages.empty()) k.stages = cuts(k, f);
  return of_model(k, f, k.ranks() / k.pipe, Depth::schedule);
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

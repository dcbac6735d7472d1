#include "stretto/plan/inner/mixed.h"

#include <algorithm>
#include <limits>


namespace stretto {
namespace {

constexpr std::size_t most_relieved = 4;
constexpr std::ptrdiff_t nodes_walked = 3'000'000;  // of schedules, to see who is too full
constexpr double made_again = 0.3;                  // of the step, when all of it is

// Relieves stages one step at a time, until no actor holds more than it may: one of them recomputes more, or gets a
// piece less.
class Relief {
 public:
  Relief(const PlanProblem& p, Predictor& predictor, const RunKeys& k, Recompute more)
      : p_(p), predictor_(predictor), now_(all_alike(p, k, more)), shape_(predictor.shapes().of(now_.keys)) {
    cut(now_);
  }

  // None: they cannot.
  std::optional<RunKeys> until(double bytes) {
    for (std::ptrdiff_t left = nodes_walked / std::max<std::ptrdiff_t>(1, shape_.nodes()); left > 0; --left) {
      if (now_.facts.empty() || now_.keys.stages.empty()) return std::nullopt;
      const std::optional<ActorId> actor = too_full(bytes);
      if (!actor) return as_run(now_.keys);
      Stages fewer = with_a_piece_less(*actor), again = with_more_made_again(*actor);
      now_ = longest(fewer) <= longest(again) ? std::move(fewer) : std::move(again);
    }
    return std::nullopt;
  }

 private:
  struct Stages {
    RunKeys keys;           // `recompute` is what stages may make again, and at first none does
    std::vector<int> most;  // pieces
    FactsOfStages facts = {};
  };
  static Stages all_alike(const PlanProblem& p, RunKeys k, Recompute more) {
    k.recompute_each.assign(k.stage_count(), k.recompute);
    k.recompute = more;
    return {k, std::vector<int>(k.stage_count(), p.pieces())};
  }
  static RunKeys as_run(RunKeys k) {
    k.set_recompute(k.recompute_each);
    return k;
  }
  void cut(Stages& s) {
    s.facts = predictor_.facts_of_stages(s.keys);
    if (!s.facts.empty()) s.keys.stages = predictor_.cuts(s.keys, s.facts, s.most);
  }
  double longest(const Stages& s) const {
    if (s.facts.empty() || s.keys.stages.empty()) return std::numeric_limits<double>::infinity();
    return StageModel(p_, s.keys, s.facts).busiest(shape_.outline().actor_of).work();
  }
  std::optional<ActorId> too_full(double bytes) const {
    const StageModel model(p_, now_.keys, now_.facts);
    std::optional<ActorId> fullest;
    for (ActorId a : ids_until<ActorId>(shape_.schedule().rows.size()))
      if (const double holds = model.played_memory(shape_, a).total(); holds > bytes) fullest = a, bytes = holds;
    return fullest;
  }
  std::vector<std::size_t> stages_of(ActorId actor) const {
    std::vector<std::size_t> stages;
    for (const auto& pipe : shape_.outline().actor_of)
      for (StageId s : pipe.ids())
        if (pipe[s] == actor) stages.push_back(s.value);
    return stages;
  }
  // Its largest stage.
  Stages with_a_piece_less(ActorId actor) {
    Stages s = now_;
    std::size_t largest = stages_of(actor).front();
    for (const std::size_t stage : stages_of(actor))
      if (s.keys.stages[stage] > s.keys.stages[largest]) largest = stage;
    s.most[largest] = s.keys.stages[largest] - 1;
    s.keys.stages.clear();
    if (s.most[largest] > 0 && p_.parallel.stages.empty()) cut(s);
    return s;
  }
  // Its first stage that can: the one of which it keeps the most microbatches.
  Stages with_more_made_again(ActorId actor) {
    Stages s = now_;
    s.keys.stages.clear();
    for (const std::size_t stage : stages_of(actor)) {
      if (s.keys.recompute_each[stage] == s.keys.recompute) continue;
      s.keys.recompute_each[stage] = s.keys.recompute;
      s.most[stage] = p_.pieces();
      cut(s);
      break;
    }
    return s;
  }

  const PlanProblem& p_;
  Predictor& predictor_;
  Stages now_;
  Shape& shape_;
};

// Of these the one that keeps the most of what keeps less.
std::optional<Recompute> next_of(Recompute less, const std::vector<Recompute>& choices) {
  bool after = false;
  for (const Recompute r : by_what_is_kept) {
    if (after && std::ranges::find(choices, r) != choices.end()) return r;
    after = after || r == less;
  }
  return std::nullopt;
}

}  // namespace

std::vector<const RunKeys*> worth_relieving(std::vector<Scored> all,
                                            const std::function<double(const RunKeys&)>& states, double capacity,
                                            double best) {
  for (Scored& s : all) {
    const double kept = s.bytes - states(*s.keys), part = kept > 0 ? (s.bytes - capacity) / kept : 1;
    s.seconds *= 1 + made_again * part;
    if (part >= 1) s.seconds = std::numeric_limits<double>::infinity();
  }
  // What goes on all the time beside tasks is not known of what was not played.
  const auto keeps_little = [](Recompute r) { return r == Recompute::layer || r == Recompute::full; };
  std::erase_if(all, [&](const Scored& s) {
    const RunKeys& k = *s.keys;
    return k.stage_count() < 2 || k.zero > 1 || keeps_little(k.recompute) || s.seconds >= best;
  });
  std::stable_sort(all.begin(), all.end(), [](const Scored& a, const Scored& b) { return a.seconds < b.seconds; });
  std::vector<const RunKeys*> keys;
  for (const Scored& s : all)
    if (keys.size() < most_relieved) keys.push_back(s.keys);
  return keys;
}

MixedRecompute::MixedRecompute(const PlanProblem& p, Predictor& predictor, const std::vector<const RunKeys*>& keys,
                               const std::vector<Recompute>& choices)
    : p_(p), predictor_(predictor), choices_(choices) {
  std::vector<Variant> variants;
  for (const RunKeys* k : keys) {
    const std::optional<Recompute> more = next_of(k->recompute, choices);
    if (!more) continue;
    all_.push_back({k, *more});
    variants.push_back(variant_of(p, *k));
    variants.push_back(variants.back());
    variants.back().recompute = *more;
  }
  predictor.learn(variants);
}

std::optional<Planned> MixedRecompute::best(const std::function<double(const RunKeys&)>& room) const {
  std::optional<Planned> best;
  for (const auto& [keys, more] : all_) {
    const double bytes = room(*keys);
    std::optional<RunKeys> k;
    for (std::optional<Recompute> r = more; r && !k; r = next_of(*r, choices_))
      k = Relief(p_, predictor_, *keys, *r).until(bytes);
    if (!k) continue;
    Planned x = predictor_.by_schedule(*k);
    if (x.refused.empty() && x.bytes <= bytes && (!best || x.seconds < best->seconds)) best = std::move(x);
  }
  if (!best) return best;
  const std::optional<Planned> x = predictor_.with_better_cuts(best->keys, room(best->keys));
  return x && x->seconds < best->seconds ? x : best;
}

}  // namespace stretto

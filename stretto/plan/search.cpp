#include "stretto/plan/search.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "stretto/plan/inner/alternatives.h"
#include "stretto/plan/inner/bounds.h"
#include "stretto/plan/inner/graph_search.h"
#include "stretto/plan/inner/mixed.h"
#include "stretto/plan/inner/prediction.h"
#include "stretto/plan/inner/programs.h"
#include "stretto/plan/inner/relatives.h"
#include "stretto/plan/inner/tolerances.h"

namespace stretto {
namespace {

constexpr std::size_t keep = 40;  // of the fastest by stages: the bar for all others
constexpr std::size_t most_played = 2000;
constexpr std::size_t most_facts = 64, quick_facts = 32;  // of very layouts
constexpr std::size_t batch = 16;                         // facts made at a time, whatever the number of threads
constexpr std::size_t slice = 256;                        // keys whose schedules are built at a time

class Search {
 public:
  Search(const PlanProblem& p, const PlanSpace& space, const PlanOptions& o)
      : p_(p),
        o_(o),
        recompute_(recompute_choices(space)),
        all_(enumerate(p, space)),
        predictor_(p, o.each),
        flops_(model_flops(p)),
        bounds_(p, flops_) {
    plan_.flops = flops_;
    plan_.capacity = p.cluster.memory * o.memory;
    plan_.counts.tried = std::ssize(all_.keys);
    plan_.counts.meshes = all_.meshes;
  }

  Plan run() {
    by_stages();
    by_schedule();
    by_others();
    o_.quick ? refine() : by_program();
    finish();
    plan_.counts.facts = std::ssize(played_) > 0 ? i64(predictor_.facts_made()) : 0;
    return std::move(plan_);
  }

 private:
  double cost(double seconds, double bytes) const { return cost_of(o_.objective, seconds, bytes); }
  double cost(const Planned& x) const { return cost(x.seconds, x.bytes); }
  bool fits(double bytes) const { return bytes <= plan_.capacity; }
  void tell(std::string_view what, double done, double of) const {
    if (o_.progress) o_.progress(what, done, of);
  }

  struct Group {
    Variant variant;
    double bound = std::numeric_limits<double>::infinity();
    std::vector<std::pair<const RunKeys*, double>> keys = {};
  };
  using Groups = std::map<Variant, Group>;

  // What the states leave.
  Groups grouped() {
    Groups groups;
    for (const RunKeys& k : all_.keys) {
      if (bounds_.bytes(k) > plan_.capacity) {
        ++plan_.counts.states;
        continue;
      }
      const Variant v = without_data(variant_of(p_, k));
      Group& g = groups.try_emplace(v, Group{.variant = v}).first->second;
      const double bound = bounds_.seconds(k);
      g.bound = std::min(g.bound, bound);
      g.keys.push_back({&k, bound});
    }
    return groups;
  }

  // Stages of those that the bounds leave, the most promising layouts first, so that the bar falls at once.
  void by_stages() {
    Groups groups = grouped();
    std::vector<Variant> variants;
    for (const auto& [v, g] : groups) variants.push_back(v);
    Relatives relatives(predictor_, variants);
    std::vector<Group*> order;
    for (auto& [v, g] : groups) order.push_back(&g);
    const auto place = [&](const Group* g) { return std::pair(relatives.turn(g->variant), g->bound); };
    std::stable_sort(order.begin(), order.end(), [&](const Group* a, const Group* b) { return place(a) < place(b); });
    for (std::size_t from = 0; from < order.size();) {
      tell("layouts", from, order.size());
      const std::size_t first = from;
      std::vector<Variant> next;
      for (; from < order.size() && next.size() < batch; ++from) {
        Group& g = *order[from];
        drop(g, relatives.least(g.variant));
        if (!g.keys.empty()) next.push_back(g.variant);
      }
      predictor_.learn(next);
      for (std::size_t i = first; i < from; ++i) stage(*order[i]);
    }
  }
  bool slow(double seconds) const { return o_.objective == Objective::time && seconds > bar_; }

  // Those that take too long by their bound, and those that take or hold too much even by the least of their layout.
  void drop(Group& g, const StageFacts* least) {
    std::vector<Planned> by_least;
    if (least) by_least = predictor_.by_stages(built(g.keys.begin(), g.keys.end()), *least);
    auto next = by_least.begin();
    std::erase_if(g.keys, [&](const auto& key) {
      if (slow(key.second)) return ++plan_.counts.bound, true;
      if (!least) return false;
      const Planned& x = *next++;
      if (x.bytes > plan_.capacity * tolerance::memory_slack)
        return ++plan_.counts.memory, remember_smallest(*key.first, x.bytes), true;
      return slow(x.seconds) ? (++plan_.counts.bound, true) : false;
    });
  }

  // Those below the bar, with their schedules.
  template <class It>
  std::vector<const RunKeys*> built(It begin, It end) {
    std::vector<const RunKeys*> next;
    for (It it = begin; it != end; ++it)
      if (!slow(it->second)) next.push_back(it->first);
    predictor_.build(next);
    return next;
  }

  // Some at a time: they are looked at side by side, and then one after the other the bar falls.
  void stage(const Group& g) {
    if (g.keys.empty()) return;
    const StageFacts* const facts = predictor_.facts(g.variant);
    for (std::size_t from = 0; from < g.keys.size(); from += slice) {
      const auto begin = g.keys.begin() + from, end = g.keys.begin() + std::min(from + slice, g.keys.size());
      std::vector<const RunKeys*> next;
      std::vector<Planned> staged;
      if (facts) next = built(begin, end), staged = predictor_.by_stages(next, *facts);
      std::size_t i = 0;
      for (auto it = begin; it != end; ++it) {
        const Planned* const x = i < next.size() && next[i] == it->first ? &staged[i++] : nullptr;
        if (slow(it->second))
          ++plan_.counts.bound;
        else if (!x)
          ++plan_.counts.refused;
        else
          stage(*it->first, *x);
      }
    }
  }

  void stage(const RunKeys& k, const Planned& x) {
    if (x.bytes > plan_.capacity * tolerance::memory_slack) return too_large(k, x);
    ++plan_.counts.fit;
    staged_.push_back({&k, x.seconds, x.bytes});
    leaders_.insert(x.seconds);
    if (leaders_.size() > keep) leaders_.erase(std::prev(leaders_.end()));
    if (leaders_.size() == keep) bar_ = (1 + 2 * o_.margin) * *leaders_.rbegin();
  }

  void too_large(const RunKeys& k, const Planned& x) {
    ++plan_.counts.memory;
    remember_smallest(k, x.bytes);
    if (!slow(x.seconds)) too_large_.push_back({&k, x.seconds, x.bytes});
  }

  // What keeps the least beside its states comes first among equals.
  auto size(const Scored& s) const {
    return std::tuple(s.bytes, s.keys->recompute != Recompute::full, s.keys->rows(p_.batch), s.keys->chunks);
  }
  void remember_smallest(const RunKeys& k, double bytes) {
    const Scored one{&k, 0, bytes};
    if (!smallest_ || size(one) < size(*smallest_)) smallest_ = one;
  }

  void play(const std::vector<const RunKeys*>& keys) {
    std::vector<Variant> variants;
    for (const RunKeys* k : keys) variants.push_back(variant_of(p_, *k));
    predictor_.learn(variants);
    predictor_.build_played(keys);
    std::vector<const RunKeys*> fresh;
    std::vector<Ready> ready;
    std::set<const RunKeys*> listed;
    for (const RunKeys* k : keys)
      if (!seen_.contains(k) && listed.insert(k).second) fresh.push_back(k), ready.push_back(predictor_.ready(*k));
    std::vector<Planned> played = predictor_.by_schedule(ready);
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      if (!played[i].refused.empty()) {
        ++plan_.counts.refused;
        continue;
      }
      ++plan_.counts.played;
      seen_[fresh[i]] = played_.size();
      played_.push_back(std::move(played[i]));
    }
  }

  void by_schedule() {
    std::stable_sort(staged_.begin(), staged_.end(), [&](const Scored& a, const Scored& b) {
      return cost(a.seconds, a.bytes) < cost(b.seconds, b.bytes);
    });
    const std::size_t facts = o_.quick ? quick_facts : most_facts, before = predictor_.facts_made();
    for (std::size_t from = 0; from < staged_.size() && played_.size() < most_played;) {
      tell("schedules", predictor_.facts_made() - before, facts);
      if (predictor_.facts_made() - before >= facts || !promising(staged_[from])) break;
      std::vector<const RunKeys*> next;
      std::set<Variant> variants;  // a batch of layouts, with all their schedules that come next
      for (; from < staged_.size() && variants.size() < batch && next.size() < most_played; ++from) {
        next.push_back(staged_[from].keys);
        variants.insert(variant_of(p_, *staged_[from].keys));
      }
      play(next);
    }
  }
  // Stages are too optimistic rather than too slow: what is slower there than the best are when played is out.
  bool promising(const Scored& s) const {
    std::vector<double> costs;
    for (const Planned& x : played_)
      if (fits(x.bytes)) costs.push_back(cost(x));
    const std::size_t wanted = std::max(o_.top, o_.compiled);
    if (costs.size() < wanted) return true;
    std::nth_element(costs.begin(), costs.begin() + (wanted - 1), costs.end());
    return cost(s.seconds, s.bytes) <= (1 + 2 * o_.margin) * costs[wanted - 1];
  }

  // The best of every value of every key, so that the plan can say why not.
  void by_others() {
    std::map<std::pair<std::string, std::string>, const RunKeys*> first;
    for (const Scored& s : staged_)
      for (const auto& [key, value] : values_of(*s.keys)) first.try_emplace({key, value}, s.keys);
    std::vector<const RunKeys*> keys;
    for (const auto& [what, k] : first)
      if (!o_.quick || predictor_.known(variant_of(p_, *k))) keys.push_back(k);
    tell("others", 0, 1);
    play(keys);
  }

  // What is fast and too large, made to fit.
  MixedRecompute mixed() {
    double best = std::numeric_limits<double>::infinity();
    for (const Planned& x : played_)
      if (fits(x.bytes)) best = std::min(best, x.seconds);
    for (const auto& [k, i] : seen_)
      if (!fits(played_[i].bytes)) too_large_.push_back({k, played_[i].seconds, played_[i].bytes});
    if (o_.objective != Objective::time) too_large_.clear();
    const auto states = [&](const RunKeys& k) { return bounds_.bytes(k); };
    return {p_, predictor_, worth_relieving(too_large_, states, plan_.capacity, (1 - tolerance::tie) * best),
            recompute_};
  }

  // The best with better cuts, and with recompute that differs. What programs hold more is not known.
  void refine() {
    std::vector<Planned*> best;
    for (Planned& x : played_)
      if (fits(x.bytes)) best.push_back(&x);
    std::ranges::stable_sort(best, [&](const Planned* a, const Planned* b) { return better(*a, *b); });
    if (std::ssize(best) > o_.compiled) best.resize(o_.compiled);
    for (Planned* x : best)
      if (std::optional<Planned> y = predictor_.with_better_cuts(x->keys, plan_.capacity); y && better(*y, *x))
        *x = std::move(*y);
    const auto room = [&](const RunKeys&) { return plan_.capacity; };
    if (std::optional<Planned> x = mixed().best(room)) played_.push_back(std::move(*x));
  }

  void by_program() {
    programs_.emplace(p_, o_, predictor_, plan_);
    programs_->compile_best(played_);
    if (o_.objective != Objective::time) return;
    programs_->compile_better_cuts();
    programs_->compile_mixed(mixed());
  }

  // Faster; or as fast and with less memory, fewer chunks, less ZeRO, in the order of names.
  bool better(const Planned& a, const Planned& b) const {
    if (cost(a) != cost(b)) return cost(a) < cost(b);
    return a.keys < b.keys;
  }
  void prefer(std::vector<Planned>& list) const {
    if (list.empty() || o_.objective != Objective::time) return;
    const double limit = (1 + tolerance::tie) * list.front().seconds;
    const auto end = std::find_if(list.begin(), list.end(), [&](const Planned& x) { return x.seconds > limit; });
    const auto taste = [](const Planned& x) {
      return std::tuple(x.bytes, x.keys.chunks, x.keys.zero, x.keys.schedule, x.keys);
    };
    const auto chosen =
        std::min_element(list.begin(), end, [&](const Planned& a, const Planned& b) { return taste(a) < taste(b); });
    std::rotate(list.begin(), chosen, chosen + 1);
  }

  void finish() {
    std::vector<Planned> exact, quick;
    if (programs_) exact = programs_->that_fit();
    for (const Planned& x : played_)
      if (fits(x.bytes) && (!programs_ || !programs_->knows(x.keys))) quick.push_back(x);
    const auto order = [&](const Planned& a, const Planned& b) { return better(a, b); };
    std::sort(exact.begin(), exact.end(), order);
    std::sort(quick.begin(), quick.end(), order);
    prefer(o_.quick ? quick : exact);
    plan_.best = exact;
    for (const Planned& x : quick)
      if (std::ssize(plan_.best) < std::max(o_.top, o_.compiled)) plan_.best.push_back(x);
    if (std::ssize(plan_.best) > o_.top) plan_.best.resize(o_.top);
    plan_.scored = std::move(exact);
    plan_.scored.insert(plan_.scored.end(), quick.begin(), quick.end());
    if (plan_.best.empty()) return find_nearest();
    const double limit = (1 + o_.margin) * cost(plan_.best.front());
    for (const Planned& x : plan_.scored)
      if (cost(x) <= limit) plan_.as_good.push_back(x);
    plan_.others = alternatives(plan_.scored, plan_.best.front().keys, o_.objective);
  }

  // Nothing fits: what comes the closest, by its program.
  void find_nearest() {
    if (programs_) plan_.nearest = programs_->smallest();
    if (plan_.nearest) return;
    size_large_states();
    if (!smallest_) return;
    Planned x = o_.quick ? predictor_.by_schedule(*smallest_->keys) : predictor_.by_program(*smallest_->keys);
    if (x.refused.empty()) plan_.nearest = std::move(x);
  }

  // Of those whose states alone are too large only these are known: some of the smallest are sized by stages, one of
  // each layout and length of the pipeline.
  void size_large_states() {
    std::map<std::pair<Variant, int>, Scored> each;
    for (const RunKeys& k : all_.keys) {
      const Scored one{&k, 0, bounds_.bytes(k)};
      if (one.bytes <= plan_.capacity) continue;
      const auto [it, fresh] = each.try_emplace({without_data(variant_of(p_, k)), k.pipe}, one);
      if (!fresh && size(one) < size(it->second)) it->second = one;
    }
    std::vector<Scored> order;
    for (const auto& [what, s] : each) order.push_back(s);
    std::stable_sort(order.begin(), order.end(), [&](const Scored& a, const Scored& b) { return size(a) < size(b); });
    std::vector<Variant> variants;
    if (order.size() > 4 * batch) order.resize(4 * batch);
    for (const Scored& s : order) variants.push_back(without_data(variant_of(p_, *s.keys)));
    predictor_.learn(variants);
    for (const Scored& s : order)
      if (const Planned x = predictor_.by_stages(*s.keys); x.refused.empty()) remember_smallest(*s.keys, x.bytes);
  }

  const PlanProblem& p_;
  const PlanOptions& o_;
  const std::vector<Recompute> recompute_;
  const Enumerated all_;
  Predictor predictor_;
  const double flops_;
  const Bounds bounds_;
  Plan plan_;
  double bar_ = std::numeric_limits<double>::infinity();
  std::multiset<double> leaders_;
  std::vector<Scored> staged_, too_large_;
  std::optional<Scored> smallest_;
  std::vector<Planned> played_;
  std::map<const RunKeys*, std::size_t> seen_;  // where they are among them
  std::optional<BestPrograms> programs_;
};

}  // namespace

Plan make_plan(const PlanProblem& p, const PlanSpace& space, const PlanOptions& o) {
  return p.graph ? plan_of_graph(p, space, o) : Search(p, space, o).run();
}

}  // namespace stretto

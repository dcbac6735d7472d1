#include "stretto/plan/arranged.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "stretto/program/overlap/side_by_side.h"

namespace stretto {
namespace {

struct Message {
  std::optional<double> guessed, arrives;  // while turns are arranged, and when they are played
};

// All actors' turns one after the other, each when it is known at what time its messages come, as Ensemble in
// program/overlap/overlap.cpp does it with regions of a program.
class TurnEnsemble {
 public:
  TurnEnsemble(ArrangedPlayer& player, const Schedule& s, const std::optional<Arrangement>& way)
      : player_(player),
        arranged_(way),
        way_(way.value_or(Arrangement{.late = false})),
        messages_(message_count(s)),
        voices_(s.rows.size()) {
    for (ActorId a : voices_.ids()) {
      Voice& v = voices_[a];
      v.turns = turns_of(s, a, player.stages(), player.options(), way_.pairs);
      for (const RowTurn& t : v.turns) v.works.push_back(&player.work_of(t.key));
    }
  }

  void run() {
    const auto sketch = [&](ActorId a) {
      send(a, *at_hand(voices_[a]).order);
      voices_[a].sketched = true;
    };
    side_by_side(
        voices_, [&](ActorId a) { return comes(voices_[a]); }, sketch, [&](ActorId a) { go_on(a); });
  }
  const std::vector<ArrangedTurn>& of(ActorId a) const { return voices_[a].arranged; }
  ArrangedRows take() {
    ArrangedRows all;
    for (Voice& v : voices_) all.push_back(std::move(static_cast<ArrangedRow&>(v)));
    return all;
  }
  std::vector<Message>& messages() { return messages_; }

 private:
  struct Voice : ArrangedRow {
    std::vector<const TurnWork*> works = {};  // with nothing left to them
    std::vector<PieceAt> left = {};
    double time = 0;
    bool sketched = false;  // the turn at hand
    bool more() const { return arranged.size() < turns.size(); }
    const RowTurn& turn() const { return turns[arranged.size()]; }
  };

  bool comes(const Voice& v) const {
    const auto& all = v.turn().messages;
    return std::all_of(all.begin(), all.end(),
                       [&](const ActionMessages& m) { return !m.in || messages_[m.in->value].guessed; });
  }
  ArrangedTurn at_hand(const Voice& v) {
    const RowTurn& t = v.turn();
    const std::size_t at = v.arranged.size();
    const TurnWork* work = v.works[at];
    if (!v.left.empty()) {
      TurnKey key = t.key;
      key.left = v.left;
      work = &player_.work_of(key);
    }
    ArrangedPlayer::Surroundings around;
    for (const ActionMessages& m : t.messages) around.late.push_back(m.in ? lateness(*m.in, v.time) : 0);
    if (at + 1 < v.works.size() && v.works[at + 1]->talks) around.leaves = way_.weights;
    return {&t, work, &player_.order_of(*work, around, arranged_)};
  }
  double lateness(StageMessageId m, double now) const {
    if (!way_.late) return 0;
    const std::optional<double>& comes = messages_[m.value].guessed;
    return comes ? rounded_lateness(std::max(0.0, *comes - now)) : std::numeric_limits<double>::infinity();
  }
  void go_on(ActorId a) {
    Voice& v = voices_[a];
    const ArrangedTurn t = at_hand(v);
    send(a, *t.order);
    v.time += t.order->seconds;
    v.left = t.order->left;
    v.sketched = false;
    v.arranged.push_back(t);
  }
  void send(ActorId a, const TurnOrder& o) {
    const Voice& v = voices_[a];
    for (const auto& [action, after] : o.sent) {
      const SentTo& to = *v.turn().messages[action].out;
      const Link l = way_.unhurried ? unhurried({}).inside : player_.links()(a.value, to.to.value);
      messages_[to.message.value].guessed = v.time + after + l.seconds(player_.message());
    }
  }

  ArrangedPlayer& player_;
  const std::optional<Arrangement> arranged_;
  const Arrangement way_;
  std::vector<Message> messages_;
  IdVector<ActorId, Voice> voices_;
};

// Plays the arranged turns, as simulate/step_time.cpp plays a program.
class TurnClock {
 public:
  TurnClock(const ArrangedPlayer& player, const Schedule& s, TurnEnsemble& all)
      : player_(player), all_(all), hands_(s.rows.size()) {
    for (ActorId a : hands_.ids()) {
      if (all.of(a).empty()) continue;
      const TurnKey& first = all.of(a).front().turn->key;
      const std::vector<PieceVisit> visits = visits_of(first, player.stages(), player.options());
      if (visits.empty()) continue;
      const PieceAt& x = visits.front().at;
      hands_[a].gather = hands_[a].free[storage_link] = player.stages()[x.stage][x.piece].gather;
    }
  }

  PlayedEnds run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (ActorId a : hands_.ids()) moved = advance(a) || moved;
    }
    PlayedEnds ends;
    for (ActorId a : hands_.ids()) {
      Hand& h = hands_[a];
      STRETTO_ASSERT(h.turn == all_.of(a).size(), "turns that were arranged wait for each other");
      settle(a);
      ends.first.push_back(h.first.value_or(0));
      ends.last.push_back(h.time);
      ends.summed.push_back(std::max(h.time, h.summed));
    }
    return ends;
  }

 private:
  struct Hand {
    std::size_t turn = 0, position = 0;
    double time = 0, gather = 0, scatter = 0, summed = 0;
    std::optional<double> first = {};
    std::map<std::uint32_t, double> free = {};  // per link
    std::vector<double> due = {};               // of the turn's collectives
  };

  bool advance(ActorId a) {
    Hand& h = hands_[a];
    bool moved = false;
    for (const auto& turns = all_.of(a); h.turn < turns.size(); ++h.turn, h.position = 0) {
      const ArrangedTurn& t = turns[h.turn];
      if (h.position == 0) h.due.assign(t.work->work.size(), 0);
      for (; h.position < t.order->order.size(); ++h.position) {
        if (!take(a, t, t.order->order[h.position])) return moved;
        moved = true;
      }
      end(h, *t.work);
    }
    return moved;
  }
  // Collectives of tasks are over when their turn is; those of storage go on.
  static void end(Hand& h, const TurnWork& w) {
    for (WorkId id : w.work.ids())
      if (w.items[id].kind == TurnItem::Kind::call) h.time = std::max(h.time, h.due[id.value]);
    if (w.gather) h.gather = h.due[w.gather->value];
    if (w.scatter) h.scatter = h.due[w.scatter->value];
    if (w.last_scatter) h.scatter = on_wire(h, storage_link, *w.last_scatter);
    if (w.last_sums > 0) h.summed = std::max(h.summed, on_wire(h, gradients_link, w.last_sums));
  }
  static double on_wire(Hand& h, std::uint32_t link, double seconds) {
    double& free = h.free[link];
    return free = std::max(free, h.time) + seconds;
  }
  // False: its message is not sent yet.
  bool take(ActorId a, const ArrangedTurn& t, WorkId id) {
    Hand& h = hands_[a];
    const TurnItem& item = t.work->items[id];
    const Work& x = t.work->work[id];
    using Kind = TurnItem::Kind;
    if (item.kind == Kind::receive) {
      const std::optional<double>& arrives = all_.messages()[t.turn->messages[item.action].in->value].arrives;
      if (arrives) h.time = std::max(h.time, *arrives);
      return arrives.has_value();
    }
    for (WorkId before : x.after)
      if (t.work->work[before].link) h.time = std::max(h.time, h.due[before.value]);
    if (item.of_gather) h.time = std::max(h.time, h.gather);
    if (item.of_scatter) h.time = std::max(h.time, h.scatter);
    if (!h.first) h.first = h.time;
    if (item.kind == Kind::send) {
      send(a, *t.turn->messages[item.action].out);
    } else if (x.link && !(item.kind == Kind::call && t.order->in_place[id.value])) {
      h.due[id.value] = on_wire(h, *x.link, x.seconds);
      if (item.kind == Kind::sum) h.summed = std::max(h.summed, h.due[id.value]);
    } else {
      h.time += x.seconds;
    }
    return true;
  }
  void send(ActorId a, const SentTo& to) {
    const Link l = player_.links()(a.value, to.to.value);
    double& free = busy_[{a, to.to}];
    free = std::max(free, hands_[a].time) + player_.message() / l.bandwidth;
    all_.messages()[to.message.value].arrives = free + l.latency;
  }
  // The last gradients that are on their way.
  void settle(ActorId a) {
    if (all_.of(a).empty() || !all_.of(a).back().work->scattered) return;
    const PieceAt& x = *all_.of(a).back().work->scattered;
    Hand& h = hands_[a];
    h.time = std::max(h.time, h.scatter) + (*player_.stages()[x.stage][x.piece].work)[Part::A].seconds();
  }

  const ArrangedPlayer& player_;
  TurnEnsemble& all_;
  IdVector<ActorId, Hand> hands_;
  std::map<std::pair<ActorId, ActorId>, double> busy_;  // links between actors
};

// As Cook::await in program/overlap/recipe.cpp finds them.
std::vector<char> in_place(const TurnWork& w, const std::vector<WorkId>& order) {
  std::vector<char> found(w.work.size(), 0), awaited(w.work.size(), 0);
  std::optional<WorkId> newest;  // a collective that nothing has followed yet
  for (WorkId id : order) {
    for (WorkId before : w.work[id].after) {
      if (!w.work[before].link || std::exchange(awaited[before.value], 1)) continue;
      found[before.value] = newest == before;
      newest.reset();
    }
    newest.reset();
    if (w.work[id].link && w.items[id].kind == TurnItem::Kind::call) newest = id;
  }
  if (newest) found[newest->value] = 1;
  return found;
}

// As program/overlap/recipe.cpp orders a region.
class TurnCook {
 public:
  TurnCook(const TurnWork& w, const std::vector<double>& late, bool unhurried) : w_(w), work_(w.work) {
    double all = 0;  // an upper bound on when anything ends
    for (WorkId id : work_.ids()) {
      if (unhurried && w.items[id].kind == TurnItem::Kind::call) work_[id].seconds = w.items[id].unhurried;
      all += work_[id].seconds;
    }
    for (const double x : late)
      if (std::isfinite(x)) all += x;
    for (WorkId id : work_.ids())
      if (w.items[id].kind == TurnItem::Kind::receive) work_[id].ready = std::min(late[w.items[id].action], all);
  }

  TurnOrder run(std::size_t leaves) {
    Interleaved all = interleave(work_);
    std::set<WorkId> gone;
    TurnOrder o;
    for (std::size_t i = w_.weights.size(); i-- > 0 && o.left.size() < leaves;)
      if (!leave(w_.weights[i], all, gone, o)) break;
    for (WorkId id : all.order) {
      if (gone.contains(id)) continue;
      o.order.push_back(id);
      if (w_.items[id].kind == TurnItem::Kind::send) o.sent.push_back({w_.items[id].action, all.ends[id]});
    }
    o.seconds = all.seconds;
    o.in_place = in_place(w_, o.order);
    return o;
  }

 private:
  // False: it fills a gap, or others wait for it.
  bool leave(const TurnWeights& x, Interleaved& all, std::set<WorkId>& gone, TurnOrder& o) {
    if (x.sent) return true;
    if (!std::all_of(x.waiting.begin(), x.waiting.end(), [&](WorkId id) { return gone.contains(id); })) return true;
    IdVector<WorkId, Work> without = work_;
    double takes = 0;
    for (std::uint32_t c = 0; c < x.calls; ++c) {
      Work& w = without[WorkId(x.first.value + c)];
      if (w.link) return true;
      takes += std::exchange(w.seconds, 0);
    }
    Interleaved rest = interleave(without);
    if (all.seconds - rest.seconds < 0.95 * takes) return false;
    all = std::move(rest), work_ = std::move(without);
    o.left.insert(o.left.begin(), x.piece);
    o.left_work.insert(o.left_work.begin(), x.first);
    for (std::uint32_t c = 0; c < x.calls; ++c) gone.insert(WorkId(x.first.value + c));
    return true;
  }

  const TurnWork& w_;
  IdVector<WorkId, Work> work_;
};

TurnOrder as_it_stands(const TurnWork& w, const std::vector<double>& late) {
  TurnOrder o{.order = w.order, .sent = {}, .in_place = std::vector<char>(w.work.size(), 1)};
  for (WorkId id : w.order) {
    const TurnItem& i = w.items[id];
    if (i.kind == TurnItem::Kind::call) o.seconds += w.work[id].seconds;
    if (i.kind == TurnItem::Kind::receive && std::isfinite(late[i.action]))
      o.seconds = std::max(o.seconds, late[i.action]);
    if (i.kind == TurnItem::Kind::send) o.sent.push_back({i.action, o.seconds});
  }
  return o;
}

}  // namespace

ArrangedPlayer::ArrangedPlayer(StagePieces stages, const TurnOptions& o, ActorLinks links, double message)
    : stages_(std::move(stages)), options_(o), links_(std::move(links)), message_(message) {}

const TurnWork& ArrangedPlayer::work_of(const TurnKey& key) {
  const auto [it, fresh] = works_.try_emplace(key);
  if (fresh) it->second = turn_work(key, stages_, options_);
  return it->second;
}

const TurnOrder& ArrangedPlayer::order_of(const TurnWork& w, const Surroundings& around,
                                          const std::optional<Arrangement>& way) {
  const By by = !way || !w.talks ? By::place : way->unhurried ? By::unhurried : By::hurried;
  const auto [it, fresh] = orders_.try_emplace({&w, by, around});
  if (fresh)
    it->second = by == By::place ? as_it_stands(w, around.late)
                                 : TurnCook(w, around.late, by == By::unhurried).run(around.leaves);
  return it->second;
}

PlayedEnds ArrangedPlayer::ends(const Schedule& s, const std::optional<Arrangement>& way) {
  TurnEnsemble all(*this, s, way);
  all.run();
  return TurnClock(*this, s, all).run();
}

ArrangedRows ArrangedPlayer::rows(const Schedule& s, const std::optional<Arrangement>& way) {
  TurnEnsemble all(*this, s, way);
  all.run();
  return all.take();
}

}  // namespace stretto

#include "stretto/plan/inner/turn_memory.h"

#include <algorithm>

#include "stretto/program/emit/buckets.h"
#include "stretto/program/memory/memory.h"

namespace stretto {
namespace {

// Whether a value belongs to the stage before or after that of its turn.
bool outside(const PieceAt& at, const StagePieces& stages) {
  return at.piece < 0 || at.piece >= std::ssize(stages[at.stage]);
}

// What an actor surely knows of the others, as program/proofs/order.h plays it: when a message is written, its reader is
// at least as far as the writer knows.
class Knowledge {
 public:
  struct Event {
    enum class Kind : std::uint8_t { receive, write, send } kind;
    StageMessageId message;
    i64 at;
    ActorId to;
    auto order() const { return std::pair(at, kind); }
  };
  Knowledge(std::size_t actors, std::size_t messages)
      : events(actors),
        posted(messages, 0),
        at_(actors, 0),
        known_(actors, std::vector<i64>(actors, 0)),
        sent_(messages) {}

  IdVector<ActorId, std::vector<Event>> events;  // in order
  std::vector<i64> posted;

  void play() {
    for (bool moved = true; moved;) {
      moved = false;
      for (ActorId a : events.ids()) moved = go_on(a) || moved;
    }
  }

 private:
  bool go_on(ActorId a) {
    bool moved = false;
    for (std::size_t& i = at_[a]; i < events[a].size(); ++i, moved = true) {
      const Event& e = events[a][i];
      std::vector<i64>& mine = known_[a];
      std::vector<i64>& sent = sent_[e.message.value];
      if (e.kind == Event::Kind::receive) {
        if (sent.empty()) return moved;
        for (std::size_t b = 0; b < mine.size(); ++b) mine[b] = std::max(mine[b], sent[b]);
        std::vector<i64>().swap(sent);
      } else if (e.kind == Event::Kind::write) {
        posted[e.message.value] = mine[e.to.value];
      } else {
        sent = mine;
        sent[a.value] = e.at + 1;
      }
    }
    return moved;
  }

  IdVector<ActorId, std::size_t> at_;
  IdVector<ActorId, std::vector<i64>> known_;
  std::vector<std::vector<i64>> sent_;
};

}  // namespace

// The buffers of one actor.
class TurnMemory::Lives {
 public:
  Lives(const TurnMemory& m, ActorId actor)
      : m_(m), actor_(actor), row_(m.rows_[actor]), stages_(m.player_.stages()), bases_(stages_.size()) {
    for (StageId s : stages_.ids())
      for (std::size_t q = 0; q < stages_[s].size(); ++q) {
        bases_[s].push_back(total_);
        if (mine(s)) total_ += m_.slots_[s][q]->count();
      }
    known_.resize(total_ * m_.s_.microbatches);
    run();
  }

  TurnBytes fullest() const {
    std::vector<double> change(end_ + 2);
    const auto add = [&](const Lifetime& x) {
      change[x.first] += aligned(x.bytes), change[x.last + 1] -= aligned(x.bytes);
    };
    for (const auto* list : {&values, &temporaries, &in_parts})
      for (const Lifetime& x : *list) add(x);
    double live = 0, most = 0;
    i64 when = 0;
    for (i64 t = 0; t <= end_; ++t)
      if ((live += change[t]) > most) most = live, when = t;
    TurnBytes b;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Lifetime& x = values[i];
      if (x.first > when || x.last < when) continue;
      (received_[i] > when ? b.messages : kept_[i] ? b.kept : b.beside) += aligned(x.bytes);
    }
    b.beside = most - b.kept - b.messages;
    return b;
  }
  double packed() {
    if (too_many_to_pack(buffers_ * m_.o_.times, m_.rows_.size())) {
      values.insert(values.end(), in_parts.begin(), in_parts.end());
      return aligned(block_) + pack_quickly(values).bytes;
    }
    for (const auto* list : {&temporaries, &in_parts}) values.insert(values.end(), list->begin(), list->end());
    return pack(values).bytes;
  }

  std::vector<Lifetime> values, temporaries, in_parts;

 private:
  bool mine(StageId s) const {
    return std::any_of(m_.s_.actor_of.begin(), m_.s_.actor_of.end(), [&](const auto& p) { return p[s] == actor_; });
  }
  void run() {
    const std::vector<Timed>& turns = m_.turns_[actor_];
    if (turns.empty()) return;
    end_ = turns.back().begin + turns.back().buffers->calls;
    for (std::size_t i = 0; i < turns.size(); ++i) turn(row_.arranged[i], turns[i]);
    for (StageId s : stages_.ids())
      for (const StagePiece& x : stages_[s])
        if (mine(s)) buffers_ += x.work->end.buffers / m_.o_.times, block_ = std::max(block_, x.work->end.block);
  }
  void turn(const ArrangedTurn& t, const Timed& timed) {
    const TurnBuffers& b = *timed.buffers;
    begin_ = timed.begin;
    for (const TouchedValue& v : b.values) value(v, *t.turn, b);
    for (const Lifetime& x : b.temporaries) temporaries.push_back({x.bytes, begin_ + x.first, begin_ + x.last});
    for (const Lifetime& x : b.in_parts) in_parts.push_back({x.bytes, begin_ + x.first, begin_ + x.last});
    block_ = std::max(block_, b.block);
    buffers_ += b.buffers;
    for (const TouchedParam& x : b.gathered_before) param(x);
    for (const TurnBuffers::Gather& g : b.gathers) {
      if (!m_.o_.whole || !gathered_.contains(g.at)) gathered_[g.at] = {.start = begin_ + g.start};
      for (const TouchedParam& x : g.touched) param(x);
    }
    for (const TurnBuffers::Summed& x : b.summed) add({x.bytes, begin_ + x.first, end_});
    if (b.scatters) scattered_ = t.turn->microbatches[*b.scatters];
    std::vector<MicrobatchId> left;
    for (WorkId first : t.order->left_work) {
      const TurnItem& item = t.work->items[first];
      left.push_back(item.left ? left_[*item.left] : t.turn->microbatches[item.action]);
    }
    left_ = std::move(left);
  }

  void add(const Lifetime& life) {
    values.push_back(life);
    received_.push_back(0), kept_.push_back(0), began_.push_back(begin_);
  }
  std::optional<MicrobatchId> microbatch(const TouchedValue& v, const RowTurn& t) const {
    if (v.of == TouchedValue::Of::scattered) return scattered_;
    return v.of == TouchedValue::Of::left ? left_[v.which] : t.microbatches[v.which];
  }
  void value(const TouchedValue& v, const RowTurn& t, const TurnBuffers& b) {
    const ActionMessages* messages = v.of == TouchedValue::Of::action ? &t.messages[v.which] : nullptr;
    PieceAt at = v.at;
    if (outside(at, stages_)) {  // made where its reader looks for it
      const int stage = at.stage.value + (at.piece < 0 ? -1 : 1);
      if ((messages && messages->out) || stage < 0 || stage >= std::ssize(stages_)) return;
      at = {StageId(stage), at.piece < 0 ? last_of(StageId(stage)) : 0};
    }
    const std::optional<MicrobatchId> m = microbatch(v, t);
    if (!m) return;
    std::uint32_t& known = known_[m->value * total_ + bases_[at.stage][at.piece] + v.slot];
    if (known == 0) {
      add({v.bytes, begin_ + v.first, begin_ + v.last});
      known = values.size();
      if (messages && messages->in && is_message(at, v, t)) {
        values.back().first = m_.posted_[messages->in->value];
        received_.back() = begin_ + b.received[v.which].value_or(0);
      }
    }
    Lifetime& life = values[known - 1];
    life.last = std::max(life.last, begin_ + v.last);
    if (began_[known - 1] != begin_) kept_[known - 1] = 1;
  }
  int last_of(StageId s) const { return int(stages_[s].size()) - 1; }
  bool is_message(const PieceAt& at, const TouchedValue& v, const RowTurn& t) const {
    const bool forward = t.key.actions[v.which].phase == Phase::F;
    const int end = forward ? 0 : last_of(at.stage);
    return at == v.at && at.piece == end && PieceSlots::comes(v.slot, forward);
  }

  struct Gathered {
    i64 start = 0;
    std::map<std::uint32_t, std::size_t> buffers = {};  // by number: which of the values
  };
  void param(const TouchedParam& x) {
    Gathered& g = gathered_[x.at];
    const auto [it, fresh] = g.buffers.try_emplace(x.number, values.size());
    if (fresh) add({x.bytes, g.start, begin_ + x.last});
    values[it->second].last = begin_ + x.last;
  }

  const TurnMemory& m_;
  const ActorId actor_;
  const ArrangedRow& row_;
  const StagePieces& stages_;
  IdVector<StageId, std::vector<std::size_t>> bases_;
  std::size_t total_ = 0;             // slots of a microbatch
  std::vector<std::uint32_t> known_;  // which of the values it is, from 1 on
  std::vector<i64> received_, began_;
  std::vector<char> kept_;
  std::map<PieceAt, Gathered> gathered_;
  std::vector<MicrobatchId> left_;
  std::optional<MicrobatchId> scattered_;
  double buffers_ = 0;
  u64 block_ = 0;
  i64 begin_ = 0, end_ = 0;
};

TurnMemory::TurnMemory(const Schedule& s, const ArrangedPlayer& player, const ArrangedRows& rows, const Options& o)
    : s_(s), player_(player), rows_(rows), o_(o), turns_(rows.size()) {
  for (const std::vector<StagePiece>& stage : player.stages()) {
    auto& slots = slots_[StageId(slots_.push_back({}))];
    for (const StagePiece& x : stage) slots.push_back(&known_slots_.try_emplace(x.work, *x.work).first->second);
  }
  for (ActorId a : rows.ids()) {
    i64 now = 1;
    for (const ArrangedTurn& t : rows[a].arranged) {
      const auto [it, fresh] = known_.try_emplace({t.work, t.order});
      if (fresh) it->second = turn_buffers(t.turn->key, *t.work, *t.order, player.stages(), slots_, player.options());
      turns_[a].push_back({&it->second, now});
      now += it->second.calls;
    }
  }
  find_posted();
  for (ActorId a : rows.ids()) live_.push_back(Lives(*this, a).fullest());
}

void TurnMemory::find_posted() {
  using Kind = Knowledge::Event::Kind;
  Knowledge all(rows_.size(), message_count(s_));
  for (ActorId a : rows_.ids()) {
    std::vector<Knowledge::Event>& events = all.events[a];
    for (std::size_t i = 0; i < turns_[a].size(); ++i) {
      const auto& [b, begin] = turns_[a][i];
      const RowTurn& t = *rows_[a].arranged[i].turn;
      const auto from = std::ssize(events);
      for (std::size_t k = 0; k < t.messages.size(); ++k) {
        const ActionMessages& m = t.messages[k];
        if (m.in && b->received[k]) events.push_back({Kind::receive, *m.in, begin + *b->received[k], a});
        if (m.out && b->sent[k]) events.push_back({Kind::send, m.out->message, begin + *b->sent[k], m.out->to});
      }
      for (const TouchedValue& v : b->values)
        if (v.of == TouchedValue::Of::action && outside(v.at, player_.stages()))
          if (const auto& out = t.messages[v.which].out)
            events.push_back({Kind::write, out->message, begin + v.first, out->to});
      std::sort(events.begin() + from, events.end(),
                [](const auto& x, const auto& y) { return x.order() < y.order(); });
    }
  }
  all.play();
  posted_ = std::move(all.posted);
}

double TurnMemory::packed(ActorId a) const { return Lives(*this, a).packed(); }

namespace {

constexpr std::size_t most_packed = 2;  // actors, of those that hold the most without gaps

}  // namespace

MemoryParts memory_by_turns(const StageModel& model, Shape& shape, ArrangedPlayer& player,
                            const std::optional<Arrangement>& way, bool whole) {
  const Schedule& s = shape.schedule();
  const Schedule* fewer = shape.fewer();
  const double times = fewer ? 1 + shape.rounds() * s.actors() / s.microbatches : 1;
  const ArrangedRows rows = player.rows(s, way);
  const TurnMemory memory(s, player, rows, {.whole = whole, .times = times});
  struct OfActor {
    ActorId actor;
    MemoryParts parts;
    KeptByStack kept;
    double least;  // without gaps
  };
  std::vector<OfActor> all;
  for (ActorId a : rows.ids()) {
    MemoryParts m = model.memory(s, a);
    // What every further round keeps.
    const double more = fewer ? shape.rounds() * std::max(0.0, m.activations - model.memory(*fewer, a).activations) : 0;
    const TurnBytes& b = memory.of(a);
    m.activations = b.kept + more, m.messages = b.messages;
    m.beside = b.beside + model.scratch();
    const KeptByStack kept = model.kept_by_stack(shape, a);
    all.push_back({a, m, kept, model.under_stack(m, kept).total()});
  }
  std::stable_sort(all.begin(), all.end(), [](auto& x, auto& y) { return x.least > y.least; });
  MemoryParts most;
  if (all.size() > most_packed) all.resize(most_packed);
  for (auto& [a, m, kept, least] : all) {
    m.gaps = memory.packed(a) - memory.of(a).live();
    if (const MemoryParts x = model.under_stack(m, kept); x.total() > most.total()) most = x;
  }
  return most;
}

}  // namespace stretto

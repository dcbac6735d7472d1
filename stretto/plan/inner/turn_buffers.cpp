#include "stretto/plan/inner/turn_buffers.h"

#include <algorithm>

namespace stretto {

using Kind = PieceBuffer::Kind;
constexpr Part makers[] = {Part::F, Part::R, Part::I, Part::W, Part::S, Part::A};

PieceSlots::PieceSlots(const PieceWork& work) : count_(3 * handed_on) {
  std::map<Part, std::uint32_t> most;
  for (const Part part : makers)
    for (const PieceBuffer& b : work[part].buffers.list)
      if (b.kind == Kind::own) most[b.maker] = std::max(most[b.maker], b.number + 1);
  for (const Part part : makers) base_[part] = count_, count_ += most[part];
}

// Inputs that F has made come first, then those that were made again, then gradients. What a piece makes for another is
// that one's. Where all of a stage is made again, its first piece alone keeps what F made.
PieceSlots::Slot PieceSlots::of(const PieceBuffer& b, Part reader, bool chained, bool first) const {
  const std::uint32_t n = std::min(b.number, handed_on - 1);
  const bool backward = reader != Part::F;
  if (b.kind == Kind::own) return {0, base_.at(b.maker) + b.number};
  if (b.kind == Kind::gradient) return {0, 2 * handed_on + n};
  if (b.kind == Kind::sent_back) return {-1, 2 * handed_on + n};
  if (b.kind == Kind::handed) return {1, (reader == Part::R ? handed_on : 0) + n};
  return {0, (chained && backward && !first ? handed_on : 0) + n};
}

namespace {

class Reader {
 public:
  Reader(const TurnKey& key, const TurnWork& w, const TurnOrder& o, const StagePieces& stages,
         const SlotsOfStages& slots, const TurnOptions& options)
      : key_(key), w_(w), o_(o), stages_(stages), slots_(slots), options_(options), awaited_(w.work.size(), 0) {
    out_.received.resize(key.actions.size());
    out_.sent.resize(key.actions.size());
  }

  TurnBuffers run() {
    for (WorkId id : o_.order) {
      for (WorkId before : w_.work[id].after)
        if (w_.work[before].link) await(before);
      take(id);
    }
    for (WorkId id : o_.order)
      if (w_.work[id].link && w_.items[id].kind == TurnItem::Kind::call) await(id);
    if (w_.last_scatter) scatter(w_.scattered_by, *w_.scattered);
    if (w_.last_scatter || w_.scatter) out_.scatters = w_.scattered_by;
    settle_runs();
    out_.calls = now_;
    return std::move(out_);
  }

 private:
  using Of = TouchedValue::Of;
  struct Run {  // of a task, perhaps in parts
    const PartWork* part;
    std::size_t calls = 0, parts = 0;
    std::map<std::uint32_t, Lifetime> temporaries = {};
  };

  const PartWork& part_of(Part part, const PieceAt& at) const { return (*stages_[at.stage][at.piece].work)[part]; }

  void await(WorkId id) {
    if (std::exchange(awaited_[id.value], 1) || !started_.contains(id)) return;
    if (w_.items[id].kind == TurnItem::Kind::call && o_.in_place[id.value]) return;
    touch_of(id);
    ++now_;
    newest_.reset();
  }
  void take(WorkId id) {
    const TurnItem& item = w_.items[id];
    using ItemKind = TurnItem::Kind;
    started_.insert(id);
    if (item.kind == ItemKind::receive) out_.received[item.action] = now_;
    if (item.kind == ItemKind::send) out_.sent[item.action] = now_;
    if (item.kind == ItemKind::gather) out_.gathers.push_back({.at = item.at, .start = now_});
    if (item.of_scatter && !std::exchange(settled_, true)) {
      for (const PieceBuffer& b : part_of(Part::S, item.at).buffers.list) value(Of::scattered, 0, item.at, Part::S, b);
      ++now_;
    }
    touch_of(id);
    if (item.kind == ItemKind::call) count(id);
    if (item.kind == ItemKind::gather) out_.buffers += stages_[item.at.stage][item.at.piece].work->end.of_gather;
    if (item.kind == ItemKind::scatter) out_.buffers += part_of(Part::S, item.at).buffers.of_body;
    ++now_;
    if (item.kind == ItemKind::call && item.part == Part::W && completes(item)) sum(item.at);
  }
  bool completes(const TurnItem& item) const {
    return !item.left && key_.actions[item.action].completes && item.call + 1 == part_of(Part::W, item.at).calls.size();
  }
  // Of several microbatches the last one counts.
  void sum(const PieceAt& at) {
    const u64 bytes = stages_[at.stage][at.piece].work->end.scattered;
    if (bytes > 0) out_.summed.push_back({bytes, now_});
  }
  void touch_of(WorkId id) {
    const TurnItem& item = w_.items[id];
    if (item.kind == TurnItem::Kind::scatter) return scatter_touches(item.action, item.at);
    if (item.kind != TurnItem::Kind::call) return;
    const PartWork& part = part_of(item.part, item.at);
    const Of of = item.left ? Of::left : item.of_scatter ? Of::scattered : Of::action;
    const std::size_t which = item.left ? *item.left : item.scatter ? w_.items[*item.scatter].action : item.action;
    for (std::uint32_t b : part.calls[item.call].touches) {
      const PieceBuffer& buffer = part.buffers.list[b];
      if (buffer.kind == Kind::temporary)
        live(runs_[{item.part, item.at, of, which}].temporaries, b, buffer.bytes);
      else if (buffer.kind == Kind::gathered)
        param(item.at, buffer);
      else
        value(of, which, item.at, item.part, buffer);
    }
  }
  void live(std::map<std::uint32_t, Lifetime>& all, std::uint32_t b, u64 bytes) {
    const auto [it, fresh] = all.try_emplace(b, Lifetime{bytes, now_, now_});
    it->second.last = now_;
  }
  // A call of a run that goes on, or of one that something has come between.
  void count(WorkId id) {
    const TurnItem& item = w_.items[id];
    const Of of = item.left ? Of::left : item.of_scatter ? Of::scattered : Of::action;
    const std::size_t which = item.left ? *item.left : item.scatter ? w_.items[*item.scatter].action : item.action;
    Run& r = runs_[{item.part, item.at, of, which}];
    r.part = &part_of(item.part, item.at);
    const bool alone = w_.work[id].link && !o_.in_place[id.value];
    if (alone || newest_ != &r || item.call != next_call_) ++r.parts, out_.buffers += r.part->buffers.of_body;
    newest_ = alone ? std::nullopt : std::optional<const Run*>(&r);
    next_call_ = item.call + 1;
  }
  void param(const PieceAt& at, const PieceBuffer& b) {
    std::vector<TouchedParam>* list = &out_.gathered_before;
    for (TurnBuffers::Gather& g : out_.gathers)
      if (g.at == at) list = &g.touched;
    const auto known = std::find_if(list->begin(), list->end(),
                                    [&](const TouchedParam& x) { return x.at == at && x.number == b.number; });
    if (known != list->end())
      known->last = now_;
    else
      list->push_back({at, b.number, b.bytes, now_});
  }
  void scatter(std::size_t action, const PieceAt& at) {
    scatter_touches(action, at);
    ++now_;
  }
  void scatter_touches(std::size_t action, const PieceAt& at) {
    for (const PieceBuffer& b : part_of(Part::S, at).buffers.list) value(Of::action, action, at, Part::S, b);
  }
  void value(Of of, std::size_t which, const PieceAt& at, Part part, const PieceBuffer& b) {
    if (b.kind == Kind::temporary) return;
    const bool chained = options_.recompute_of(at.stage) == Recompute::full;
    const PieceSlots::Slot slot = slots_[at.stage][at.piece]->of(b, part, chained, at.piece == 0);
    const PieceAt where{at.stage, at.piece + slot.piece};
    if (part == Part::R && slot.piece > 0 && where.piece == std::ssize(stages_[at.stage])) return;  // not made
    const auto [it, fresh] = known_.try_emplace({of, which, where, slot.number}, out_.values.size());
    if (fresh) out_.values.push_back({of, which, where, slot.number, b.bytes, now_, now_});
    out_.values[it->second].last = now_;
  }
  void settle_runs() {
    for (const auto& [what, r] : runs_) {
      if (!r.part) continue;
      std::vector<Lifetime>& to = r.parts > 1 ? out_.in_parts : out_.temporaries;
      for (const auto& [b, life] : r.temporaries) to.push_back(life);
      if (r.parts == 1) out_.block = std::max(out_.block, r.part->buffers.block);
    }
  }

  const TurnKey& key_;
  const TurnWork& w_;
  const TurnOrder& o_;
  const StagePieces& stages_;
  const SlotsOfStages& slots_;
  const TurnOptions& options_;
  TurnBuffers out_;
  i64 now_ = 0;
  bool settled_ = false;
  std::vector<char> awaited_;
  std::set<WorkId> started_;
  std::map<std::tuple<Part, PieceAt, Of, std::size_t>, Run> runs_;
  std::map<std::tuple<Of, std::size_t, PieceAt, std::uint32_t>, std::size_t> known_;
  std::optional<const Run*> newest_;  // whose last call was the one before
  std::uint32_t next_call_ = 0;
};

}  // namespace

TurnBuffers turn_buffers(const TurnKey& key, const TurnWork& w, const TurnOrder& o, const StagePieces& stages,
                         const SlotsOfStages& slots, const TurnOptions& options) {
  return Reader(key, w, o, stages, slots, options).run();
}

}  // namespace stretto

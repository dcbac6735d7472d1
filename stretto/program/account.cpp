#include "stretto/program/account.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "stretto/base/pack.h"
#include "stretto/base/text.h"
#include "stretto/program/memory.h"
#include "stretto/stage/keeps.h"

namespace stretto {
namespace {

using Kind = Holding::Kind;

class Accountant {
 public:
  Accountant(const Program& p, int actor, const std::vector<StageKeeps>& kept)
      : p_(p),
        s_(*p.step),
        a_(p.actors[std::size_t(actor)]),
        row_(p.schedule.rows[std::size_t(actor)]),
        actor_(actor),
        instances_(s_) {
    for (std::size_t stage = 0; stage < kept.size(); ++stage)
      for (const Keep& k : kept[stage].values) keeps_[k.value].push_back({int(stage), k});
    for (int i = 0; i < int(row_.size()); ++i) {
      const Action& a = row_[std::size_t(i)];
      const auto put = [&](Part part) { position_.try_emplace({part, a.stage, a.microbatch}, i); };
      if (a.phase == Phase::F) put(Part::F);
      if (a.phase == Phase::R) put(Part::R);
      if (a.phase == Phase::B || a.phase == Phase::I) put(Part::I);
      if (a.phase == Phase::B || a.phase == Phase::W) put(Part::W);
    }
  }

  ActorAccount run() {
    collect();
    ActorAccount out;
    out.planned = a_.bytes[std::size_t(Arena::activations)];
    out.scratch = a_.bytes[std::size_t(Arena::scratch)];
    find_peak(out);
    find_kept(out);
    return out;
  }

 private:
  static constexpr i64 never = -1;
  static constexpr std::uint32_t none = ~0u;
  struct Buffer {
    u64 bytes = 0;
    i64 first = 0, last = 0;
    i64 received = never;                       // under way until then
    std::uint32_t value = ~0u, microbatch = 0;  // of temporaries: the microbatch alone
    int stage = -1;                             // of the run that makes it, or that it is a temporary of
    int made = 0, read = 0;  // positions in the row: of the action that makes or receives it, of the last that reads it
  };

  // Lifetimes of everything in this actor's arena of activations.
  void collect() {
    clock_ = instruction_clock(p_, a_);
    // Receives belong to the run behind them, sends to the one before; -1 and the row's size: outside of all actions.
    of_.assign(a_.code.size(), -1);
    bool started = false;
    for (std::size_t i = 0; i < a_.code.size(); ++i) {
      const Run* r = task_of(a_.code[i]);
      if (r) of_[i] = r->action != ~0u ? int(r->action) : started ? int(row_.size()) : -1;
      started = started || (std::holds_alternative<Run>(a_.code[i]) && r->action != ~0u);
      if (!r && !std::holds_alternative<Receive>(a_.code[i]) && i > 0) of_[i] = of_[i - 1];
    }
    int next = int(row_.size());
    for (std::size_t i = a_.code.size(); i-- > 0;) {
      if (std::holds_alternative<Receive>(a_.code[i])) of_[i] = next;
      if (std::holds_alternative<Run>(a_.code[i])) next = of_[i];
    }
    for (std::size_t i = 0; i < a_.code.size(); ++i) {
      if (const Run* r = std::get_if<Run>(&a_.code[i])) {
        run(*r, i);
      } else if (const Start* s = std::get_if<Start>(&a_.code[i])) {
        starting_ = s->number;
        run(s->run, i);
        starting_ = none;
      } else if (const Await* w = std::get_if<Await>(&a_.code[i])) {
        instances_.awaited(*w);
        for (std::size_t k : started_[w->number]) all_[k].last = std::max(all_[k].last, clock_[i]);
      } else if (const Send* s = std::get_if<Send>(&a_.code[i])) {
        const Transfer& t = p_.transfers[s->transfer];
        const i64 last = t.released > 0 ? std::max(clock_[i], clock_[t.released] - 1) : clock_[i];
        if (t.value != ~0u && !t.direct) touch(t.value, t.microbatch, t.pieces[0].bytes, i, clock_[i], last);
      } else if (const Receive* v = std::get_if<Receive>(&a_.code[i])) {
        const Transfer& t = p_.transfers[v->transfer];
        if (t.value == ~0u) continue;
        touch(t.value, t.microbatch, t.pieces[0].bytes, i, clock_[t.posted], clock_[i]).received = clock_[i];
      }
    }
  }
  void run(const Run& r, std::size_t i) {
    const Calls& calls = *p_.calls[r.task];
    const Task& task = s_.tasks[r.task];
    const int stage = r.action == ~0u ? -1 : p_.stage_of[task.piece];
    for (BufferId b : calls.buffers.ids()) {
      const BodyBuffer& buffer = calls.buffers[b];
      const Slot& slot = a_.slots[r.args + b.value];
      if (!buffer.touched || slot.arena != Arena::activations || slot.actor != Slot::own) continue;
      const i64 first = clock_[i] + buffer.touched->first.value, last = clock_[i] + buffer.touched->last.value;
      if (buffer.temporary()) {
        all_.push_back({aligned(buffer.bytes), first, last, never, ~0u, r.microbatch, stage, of_[i], of_[i]});
      } else {
        const Binding& where =
            buffer.argument() ? task.inputs[buffer.argument()->value] : task.outputs[buffer.result()->value];
        const std::uint32_t instance =
            buffer.result() ? instances_.made(r, starting_, where.index) : instances_.read(r, where.index);
        Buffer& mine = touch(where.index, instance, buffer.bytes, i, first, last);
        mine.stage = stage;
        mine.microbatch = r.microbatch;
        if (starting_ != none) started_[starting_].push_back(std::size_t(&mine - all_.data()));
      }
    }
  }
  Buffer& touch(std::uint32_t value, std::uint32_t microbatch, u64 bytes, std::size_t i, i64 first, i64 last) {
    const auto [it, fresh] = index_.try_emplace((u64(value) << 32) | microbatch, all_.size());
    if (fresh) all_.push_back({aligned(bytes), first, last, never, value, microbatch, -1, of_[i], of_[i]});
    Buffer& b = all_[it->second];
    b.last = std::max(b.last, last);
    b.read = std::max(b.read, of_[i]);
    return b;
  }

  // The stage on this actor that keeps a value the longest, and where its keeping begins.
  struct Keeper {
    int stage = -1, begin = 0, end = 0;
    Keep keep;
  };
  Keeper keeper(const Buffer& b) const {
    Keeper best;
    const auto found = keeps_.find(b.value);
    if (b.value == ~0u || found == keeps_.end()) return best;
    const std::vector<int>& actor_of = p_.schedule.actor_of[p_.pipe_of[b.microbatch]];
    int earliest = int(row_.size());
    for (const auto& [stage, keep] : found->second) {
      if (actor_of[std::size_t(stage)] != actor_) continue;
      const int begin = position(keep.from, stage, b.microbatch), end = position(keep.until, stage, b.microbatch);
      if (begin == end) continue;
      earliest = std::min(earliest, begin);
      if (best.stage < 0 || end > best.end) best = {stage, begin, end, keep};
    }
    best.begin = earliest;
    return best;
  }
  int position(Part part, int stage, std::uint32_t microbatch) const {
    const auto it = position_.find({part, std::uint16_t(stage), microbatch});
    if (it != position_.end()) return it->second;
    return part == Part::R ? position(Part::I, stage, microbatch) : int(row_.size());
  }

  void find_peak(ActorAccount& out) const {
    std::vector<std::pair<i64, i64>> events;  // (time, change); ends come before the starts of the next instant
    for (const Buffer& b : all_) {
      events.push_back({b.first * 2, i64(b.bytes)});
      events.push_back({b.last * 2 + 1, -i64(b.bytes)});
    }
    std::sort(events.begin(), events.end());
    i64 live = 0, most = 0, when = 0;
    for (const auto& [time, change] : events)
      if ((live += change) > most) most = live, when = time / 2;
    out.live = u64(most);
    out.fragmentation = out.planned - out.live;
    const std::size_t at = std::size_t(std::upper_bound(clock_.begin(), clock_.end() - 1, when) - clock_.begin()) - 1;
    out.moment = moment(at);
    std::map<std::pair<Kind, int>, Holding> holdings;
    for (const Buffer& b : all_) {
      if (b.first > when || b.last < when) continue;
      const auto [kind, stage] = classify(b, of_[at], when);
      Holding& h = holdings.try_emplace({kind, stage}, Holding{kind, stage, {}, 0}).first->second;
      h.bytes += b.bytes;
      h.microbatches.push_back(b.microbatch);
    }
    for (auto& [key, h] : holdings) {
      std::sort(h.microbatches.begin(), h.microbatches.end());
      h.microbatches.erase(std::unique(h.microbatches.begin(), h.microbatches.end()), h.microbatches.end());
      out.peak.push_back(std::move(h));
    }
  }
  std::pair<Kind, int> classify(const Buffer& b, int at, i64 when) const {
    if (b.value != ~0u && of_storage(s_, b.value)) return {Kind::storage, b.stage};
    if (b.received > when) return {Kind::waiting, keeper(b).stage >= 0 ? keeper(b).stage : b.stage};
    if (b.made == b.read) return {Kind::temporary, b.stage};
    const Keeper k = keeper(b);
    if (k.stage < 0 || at < k.begin) return {Kind::waiting, k.stage >= 0 ? k.stage : b.stage};
    if (k.keep.from == Part::F) return {k.keep.until == Part::W ? Kind::until_w : Kind::until_i, k.stage};
    return {k.keep.until == Part::W ? Kind::for_w : Kind::for_i, k.stage};
  }

  void find_kept(ActorAccount& out) const {
    std::vector<i64> change(row_.size() + 2, 0);  // behind every action
    for (const Buffer& b : all_) {
      const Keeper k = keeper(b);
      if (k.stage < 0) continue;
      const int begin = std::max({0, b.made, k.begin}), end = std::min(b.read, int(row_.size()));
      if (begin >= end) continue;
      change[std::size_t(begin)] += i64(b.bytes), change[std::size_t(end)] -= i64(b.bytes);
    }
    i64 kept = 0;
    for (std::size_t i = 0; i < row_.size(); ++i)
      if ((kept += change[i]) > i64(out.kept))
        out.kept = u64(kept), out.kept_behind = cell(row_[i], p_.schedule.stages);
  }

  std::string moment(std::size_t instruction) const {
    const int at = of_[instruction];
    if (at < 0 || at >= int(row_.size())) return at < 0 ? "before the first action" : "after the last action";
    const Run* r = std::get_if<Run>(&a_.code[instruction]);
    const std::string action = cell(row_[std::size_t(at)], p_.schedule.stages);
    return r ? fmt::format("{}, {} of piece {}", action, name_of(s_.tasks[r->task].part), s_.tasks[r->task].piece)
             : action;
  }

  const Program& p_;
  const Step& s_;
  const ActorProgram& a_;
  const Row& row_;
  const int actor_;
  Instances instances_;
  std::uint32_t starting_ = none;
  std::unordered_map<std::uint32_t, std::vector<std::size_t>> started_;         // what it owns, in all_
  std::unordered_map<std::uint32_t, std::vector<std::pair<int, Keep>>> keeps_;  // per value: stages that keep it
  std::map<std::tuple<Part, std::uint16_t, std::uint32_t>, int> position_;      // of actions in the row
  std::vector<i64> clock_;
  std::vector<int> of_;  // per instruction: position of its action
  std::vector<Buffer> all_;
  std::unordered_map<u64, std::size_t> index_;
};

// "3", "0 to 4", "0 2 5"
std::string numbers(const std::vector<std::uint32_t>& sorted) {
  std::vector<std::string> runs;
  for (std::size_t i = 0, j = 0; i < sorted.size(); i = j) {
    for (j = i + 1; j < sorted.size() && sorted[j] == sorted[j - 1] + 1;) ++j;
    if (j - i > 2)
      runs.push_back(fmt::format("{} to {}", sorted[i], sorted[j - 1]));
    else
      for (std::size_t k = i; k < j; ++k) runs.push_back(fmt::format("{}", sorted[k]));
  }
  return join(runs, " ");
}

std::string bytes_str(u64 n) { return human_bytes(double(n)); }

std::string peaks_str(const std::vector<ActorAccount>& accounts) {
  std::string text;
  for (std::size_t a = 0; a < accounts.size(); ++a) {
    const ActorAccount& x = accounts[a];
    text += fmt::format("\nactor {}: most alive in {}\n", a, x.moment.empty() ? "no action" : x.moment);
    std::vector<std::vector<std::string>> rows{{"bytes", "what", "stage", "microbatches"}};
    for (const Holding& h : x.peak)
      rows.push_back({bytes_str(h.bytes), std::string(name_of(h.kind)), h.stage < 0 ? "-" : fmt::format("{}", h.stage),
                      numbers(h.microbatches)});
    rows.push_back({bytes_str(x.fragmentation), "free between buffers", "", ""});
    text += table(rows);
    if (x.kept > 0)
      text += fmt::format(
          "kept between actions: at most {}, behind {}; temporaries, messages, gaps and scratch beside it {}, "
          "{:.1f}%\n",
          bytes_str(x.kept), x.kept_behind, bytes_str(x.beside()), 100 * double(x.beside()) / double(x.kept));
  }
  return text;
}

// What each task holds while it runs: values it reads, values it makes for others, and the most of its own temporaries.
std::string tasks_str(const Program& p) {
  std::vector<std::vector<std::string>> rows{{"task", "reads", "keeps for others", "temporaries", "workspace"}};
  for (std::size_t t = 0; t < p.step->tasks.size(); ++t) {
    const Task& task = p.step->tasks[t];
    if (task.part > Part::W) continue;
    const auto total = [&](const std::vector<Binding>& list) {
      double bytes = 0;
      for (const Binding& b : list)
        if (b.place == Place::value) bytes += double(p.step->values[b.index].bytes);
      return human_bytes(bytes);
    };
    std::vector<Lifetime> own;
    for (const BodyBuffer& b : p.calls[t]->buffers)
      if (b.temporary() && b.touched) own.push_back({b.bytes, b.touched->first.value, b.touched->last.value});
    rows.push_back({fmt::format("{} {}", name_of(task.part), task.piece), total(task.inputs), total(task.outputs),
                    human_bytes(double(live_bound(own))), human_bytes(double(p.calls[t]->scratch))});
  }
  return table(rows);
}

}  // namespace

std::string_view name_of(Kind k) {
  constexpr std::string_view names[] = {"F keeps until I",
                                        "F keeps until W",
                                        "I keeps for W",
                                        "R keeps for I",
                                        "messages waiting",
                                        "temporaries",
                                        "gathered or to be scattered"};
  return names[std::size_t(k)];
}

u64 ActorAccount::bytes(Kind kind) const {
  u64 sum = 0;
  for (const Holding& h : peak)
    if (h.kind == kind) sum += h.bytes;
  return sum;
}
u64 ActorAccount::beside() const { return planned + scratch - std::min(kept, planned); }

std::vector<ActorAccount> account(const Program& p) {
  const std::vector<StageKeeps> kept = keeps(*p.step, p.stage_of);
  std::vector<ActorAccount> all;
  for (int a = 0; a < int(p.actors.size()); ++a) all.push_back(Accountant(p, a, kept).run());
  return all;
}

std::string Program::memory_str() const {
  const std::vector<ActorAccount> accounts = account(*this);
  std::vector<std::vector<std::string>> rows{{"actor", "weights", "gradients", "optimizer", "activations", "gathered",
                                              "temporaries", "messages", "gaps", "scratch", "batch, results", "total"}};
  for (std::size_t a = 0; a < actors.size(); ++a) {
    const ActorAccount& x = accounts[a];
    const auto arena = [&](Arena k) { return actors[a].bytes[std::size_t(k)]; };
    u64 total = 0;
    for (u64 b : actors[a].bytes) total += b;
    rows.push_back({fmt::format("{}", a)});
    for (u64 n : {arena(Arena::params), arena(Arena::gradients), arena(Arena::state),
                  x.live - x.bytes(Kind::waiting) - x.bytes(Kind::temporary) - x.bytes(Kind::storage),
                  x.bytes(Kind::storage), x.bytes(Kind::temporary), x.bytes(Kind::waiting), x.fragmentation,
                  arena(Arena::scratch), arena(Arena::inputs) + arena(Arena::results), total})
      rows.back().push_back(bytes_str(n));
  }
  const std::string ranks =
      ranks_per_actor() > 1 ? fmt::format("Of each of an actor's {} ranks, {}.\n", ranks_per_actor(), mesh.str()) : "";
  return table(rows) + ranks +
         "Activations, gathered parameters and gradients on their way, temporaries, messages and the gaps between "
         "them: when "
         "the most is alive.\n" +
         peaks_str(accounts) + "\nEach task, one microbatch:\n" + tasks_str(*this);
}

}  // namespace stretto

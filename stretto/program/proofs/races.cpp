#include "stretto/program/proofs/races.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>

#include "stretto/program/emit/touches.h"
#include "stretto/program/proofs/order.h"

namespace stretto {
namespace {

constexpr std::size_t most_races = 10;  // reported per actor: one missing wait causes many

struct Bytes {
  Arena arena;
  u64 from = 0, to = 0;
};
struct Access {
  Bytes bytes;
  bool writes = false;
};
// During which instructions of a compute lane something may be under way.
struct Window {
  InstructionId after{0};  // all before this one are over when it begins
  InstructionId until{0};  // it is over when this one begins; for an instruction of that lane: itself
};
struct Who {
  ActorId actor;
  DeviceLane lane;
  InstructionId instruction;
  Window own = {};  // in its own actor's compute lane
};
bool before(const Who& x, const Who& y) {  // of one actor
  if (x.lane == y.lane) return x.instruction <= y.instruction;
  return y.lane == DeviceLane::compute ? x.own.until <= y.instruction : x.own.until < y.own.after;
}
// Something outside of the compute lane of the actor whose memory it touches.
struct Foreign {
  Who who;
  Access access;
  Window window;  // in the compute lane of the actor whose memory it is
  // Of writes of other actors, in programs that keep what is sent: what the writer knows of all actors.
  std::shared_ptr<const Known> known = {};
  bool told_early = false;  // its message is sent before it is written
};

Access access_of(const Slot& s, u64 bytes, bool writes) { return {{s.arena, s.offset, s.offset + bytes}, writes}; }

// Calls visit(actor whose memory it is, access) for all that an instruction touches.
class Accesses {
 public:
  explicit Accesses(const Program& p) : p_(p), touches_(p) {}
  // What a message writes is its receiver's, and found where it is sent. What a Start uses until its Await is the
  // Start's.
  template <class Visit>
  void of(ActorId actor, const Instruction& i, Visit visit) {
    match(
        i, [&](const Run& r) { of(actor, r, visit); }, [&](const Start& s) { of(actor, s.run, visit); },
        [&](const Send& s) {
          if (const Transfer& t = p_.transfers[s.transfer]; !t.direct)
            for (const Extent& e : t.extents) visit(actor, access_of(e.from, e.bytes, false));
        },
        [](const OneOf<Receive, Await> auto&) {});
  }
  template <class Visit>
  void of(ActorId actor, const Run& r, Visit visit) {
    for (const Touch& t : touches_.of(r)) {
      const Slot& s = p_.actors[actor].slots[SlotId(r.args.value + t.buffer.value)];
      visit(s.elsewhere.value_or(actor), Access{{s.arena, s.offset + t.span.from, s.offset + t.span.to}, t.written});
    }
  }

 private:
  const Program& p_;
  KnownTouches touches_;
};

bool lies_in(const Bytes& b, const Extent& e) {
  return b.arena == e.to.arena && e.to.offset <= b.from && b.to <= e.to.offset + e.bytes;
}

// Of instructions in other lanes than compute: from what their lane has waited for, to where the compute lane first
// waits for them or for something after them.
using Windows = std::map<InstructionId, Window>;
Windows windows_of(const Lanes& lanes) {
  Windows all;
  std::map<DeviceLane, std::vector<InstructionId>> open;
  std::map<DeviceLane, InstructionId> after;
  for (InstructionId i : lanes.lane.ids()) {
    const DeviceLane lane = lanes.lane[i];
    for (InstructionId j : lanes.waits[i]) {
      if (lane == DeviceLane::compute)
        std::erase_if(open[lanes.lane[j]], [&](InstructionId k) {
          if (k <= j) all[k].until = i;
          return k <= j;
        });
      else if (lanes.lane[j] == DeviceLane::compute)
        after[lane] = std::max(after[lane], InstructionId(j.value + 1));
    }
    if (lane == DeviceLane::compute) continue;
    open[lane].push_back(i);
    all[i] = {after[lane], lanes.lane.next_id()};
  }
  return all;
}

// Where each message is received.
using Received = IdVector<TransferId, std::optional<InstructionId>>;
Received received_in(const Program& p) {
  Received all(p.transfers.size());
  for (const ActorProgram& a : p.actors)
    for (const Turn& t : a.code.turns()) {
      const std::vector<Instruction>& kind = a.code.kind(t).instructions;
      for (std::size_t k = 0; k < kind.size(); ++k)
        if (const auto number = received_by(kind[k]))
          all[a.code.transfer(t, *number)] = InstructionId(t.first.value + k);
    }
  return all;
}

// All foreign accesses, per actor whose memory they touch.
class Collection {
 public:
  Collection(const Program& p, const IdVector<ActorId, Lanes>& lanes, const Received& received)
      : p_(p), lanes_(lanes), accesses_(p), found_(p.actors.size()), received_(received) {}

  IdVector<ActorId, std::vector<Foreign>> run() {
    for (const Lanes& lanes : lanes_) windows_.push_back(windows_of(lanes));
    for (ActorId a : p_.actors.ids()) find_sends(a);
    for (ActorId a : p_.actors.ids()) own_lanes(a);
    const auto reaches_out = [&](ActorId a, TurnCodeId kind, std::size_t k) { return reaches_out_[a][kind][k] != 0; };
    play(p_, reaches_out, [&](ActorId a, At at, const Known& known) { elsewhere(a, at, known); });
    return std::move(found_);
  }

 private:
  // What the actor's other lanes do to its own memory.
  void own_lanes(ActorId a) {
    const auto& code = p_.actors[a].code;
    for (const auto& [i, window] : windows_[a]) {
      const Who who{a, lanes_[a].lane[i], i, window};
      accesses_.of(a, code[i], [&](ActorId whose, const Access& x) {
        if (whose == a) found_[a].push_back({who, x, window});
      });
    }
  }

  // What an instruction writes into the memory of other actors.
  void elsewhere(ActorId a, At at, const Known& known) {
    const InstructionId i = at.id();
    const Instruction code = p_.actors[a].code.at(at.turn, at.in_turn);
    const auto own = windows_[a].find(i);
    const Who who{a, lanes_[a].lane[i], i, own == windows_[a].end() ? Window{i, i} : own->second};
    const auto add = [&](ActorId whose, const Access& x, TransferId t, InstructionId sent) {
      const InstructionId end = p_.actors[whose].code.next_id(), until = sent < i ? end : received_[t].value_or(end);
      found_[whose].push_back({who, x, {std::min(known[whose], p_.transfers[t].posted), until}});
      found_[whose].back().told_early = sent < i;
      if (p_.transfers[t].released) found_[whose].back().known = std::make_shared<const Known>(known);
    };
    const auto run = [&](const Run& r) {
      const auto direct = has_direct_[a].find({r.task, r.microbatch});
      if (direct == has_direct_[a].end()) return;
      accesses_.of(a, r, [&](ActorId whose, const Access& x) {
        if (whose == a) return;
        for (const auto& [t, sent] : direct->second)
          if (p_.routes[p_.transfers[t].route].target == whose && lies_in(x.bytes, p_.transfers[t].extents[0]))
            add(whose, {x.bytes, true}, t, sent);
      });
    };
    match(
        code, run, [&](const Start& s) { run(s.run); },
        [&](const Send& s) {
          const Transfer& t = p_.transfers[s.transfer];
          if (t.direct) return;
          for (const Extent& e : t.extents)
            add(p_.routes[t.route].target, access_of(e.to, e.bytes, true), s.transfer, i);
        },
        [](const OneOf<Receive, Await> auto&) {});
  }

  // Which messages a run makes in their receiver's memory, and where they are sent.
  void find_sends(ActorId a) {
    has_direct_.push_back({});
    const Code& code = p_.actors[a].code;
    std::set<TaskId> producers;
    for (const Turn& t : code.turns()) {
      const std::vector<Instruction>& kind = code.kind(t).instructions;
      for (std::size_t k = 0; k < kind.size(); ++k)
        if (const auto number = sent_by(kind[k]); number && p_.transfers[code.transfer(t, *number)].direct) {
          const TransferId sent = code.transfer(t, *number);
          const SentValue& v = *p_.transfers[sent].value();
          const TaskId producer = p_.step->values[v.value].producer;
          has_direct_[a][{producer, v.microbatch}].push_back({sent, InstructionId(t.first.value + k)});
          producers.insert(producer);
        }
    }
    reaches_out_.push_back({});
    for (const TurnCode& kind : code.kinds()) {
      std::vector<char> all;
      for (const Instruction& i : kind.instructions) {
        const Run* r = task_of(i);
        all.push_back(r ? producers.contains(r->task) : sent_by(i).has_value());
      }
      reaches_out_[a].push_back(std::move(all));
    }
  }

  const Program& p_;
  const IdVector<ActorId, Lanes>& lanes_;
  Accesses accesses_;
  IdVector<ActorId, std::vector<Foreign>> found_;
  const Received& received_;
  IdVector<ActorId, Windows> windows_;
  IdVector<ActorId, std::map<std::pair<TaskId, MicrobatchId>, std::vector<std::pair<TransferId, InstructionId>>>>
      has_direct_;
  // Of the instructions of all codes: may they write into other actors' memory?
  IdVector<ActorId, IdVector<TurnCodeId, std::vector<char>>> reaches_out_;
};

// The accesses that are under way, found by where they touch memory.
class UnderWay {
 public:
  // Only of these is anything ever under way.
  explicit UnderWay(const std::vector<Foreign>& all) {
    for (const Foreign& f : all) {
      Touching& t = of_[f.access.bytes.arena];
      t.from = std::min(t.from.value_or(f.access.bytes.from), f.access.bytes.from);
      t.to = std::max(t.to, f.access.bytes.to);
    }
  }
  void add(const Foreign& f) {
    const Bytes& b = f.access.bytes;
    Touching& t = of_[b.arena];
    t.longest = std::max(t.longest, b.to - b.from);
    ends_.push({f.window.until, b.arena, t.by_end.insert({b.to, &f})});
  }
  void end_before(InstructionId i) {
    for (; !ends_.empty() && ends_.top().until < i; ends_.pop()) of_[ends_.top().arena].by_end.erase(ends_.top().at);
  }
  bool empty() const { return ends_.empty(); }
  // Those that overlap, where one of the two writes.
  template <class Visit>
  void meeting(const Access& x, Visit visit) const {
    const Touching& t = of_[x.bytes.arena];
    if (!t.from || x.bytes.to <= *t.from || t.to <= x.bytes.from) return;
    for (auto it = t.by_end.upper_bound(x.bytes.from); it != t.by_end.end(); ++it) {
      if (it->first >= x.bytes.to + t.longest) return;  // whatever follows begins after it
      const Access& y = it->second->access;
      if (y.bytes.from < x.bytes.to && (x.writes || y.writes)) visit(*it->second);
    }
  }

 private:
  struct Touching {
    std::multimap<u64, const Foreign*> by_end;
    u64 longest = 0;
    std::optional<u64> from = {};  // of all that is ever under way here
    u64 to = 0;
  };
  struct End {
    InstructionId until;
    Arena arena;
    std::multimap<u64, const Foreign*>::iterator at;
    bool operator<(const End& other) const { return until > other.until; }
  };
  PerArena<Touching> of_;
  std::priority_queue<End> ends_;
};

// One actor's memory.
class RaceCheck {
 public:
  RaceCheck(const Program& p, const Lanes& lanes, ActorId a, std::vector<Foreign> foreign, const Received& received,
            std::vector<Fault>& faults)
      : p_(p),
        lanes_(lanes),
        a_(a),
        foreign_(std::move(foreign)),
        faults_(faults),
        accesses_(p),
        received_(received),
        under_way_(foreign_) {
    std::stable_sort(foreign_.begin(), foreign_.end(),
                     [](const Foreign& x, const Foreign& y) { return x.window.after < y.window.after; });
  }

  void run() {
    const auto& code = p_.actors[a_].code;
    std::size_t next = 0;
    const auto begin = [&](InstructionId i) {
      under_way_.end_before(i);
      for (; next < foreign_.size() && foreign_[next].window.after <= i; ++next) start(foreign_[next]);
    };
    for (Code::Iterator at = code.begin(); at != code.end(); ++at) {
      const InstructionId i = at.id();
      begin(i);
      if (!under_way_.empty() && lanes_.lane[i] == DeviceLane::compute) compute(i, *at);
    }
    begin(code.next_id());
  }

 private:
  void start(const Foreign& f) {
    under_way_.meeting(f.access, [&](const Foreign& g) {
      const bool in_order = f.who.actor == g.who.actor && (before(f.who, g.who) || before(g.who, f.who));
      if (!in_order && !arrived_before(f, g) && !arrived_before(g, f) && !released_before(g, f))
        told(f.who, f.access, g);
    });
    under_way_.add(f);
  }
  // What a message was read from is free for everybody who knows that it has arrived.
  bool arrived_before(const Foreign& read, const Foreign& f) const {
    const std::optional<TransferId> t = sent_by(p_.actors[read.who.actor].code[read.who.instruction]);
    if (!t || read.access.writes || !f.known || !received_[*t]) return false;
    return (*f.known)[p_.routes[p_.transfers[*t].route].target] > *received_[*t];
  }
  // Where a message's memory is free and another is expected there, the actor waits for the first and then lets the
  // second come (Transport::at).
  bool released_before(const Foreign& read, const Foreign& f) const {
    return read.who.actor == a_ && f.who.actor != a_ && !read.access.writes && read.window.until <= f.window.after;
  }
  void compute(InstructionId i, const Instruction& code) {
    const auto look = [&](ActorId whose, const Access& x) {
      if (whose == a_)
        under_way_.meeting(x, [&](const Foreign& f) {
          if (f.window.until > i) told({a_, DeviceLane::compute, i}, x, f);
        });
    };
    accesses_.of(a_, code, look);
  }

  void told(const Who& who, const Access& x, const Foreign& f) {
    if (++told_ > most_races) return;
    const auto says = [&](const Who& w, bool writes) {
      return fmt::format("{} (actor {}, instruction {}, lane {}) {}", p_.str(p_.actors[w.actor].code[w.instruction]),
                         w.actor.value, w.instruction.value, name_of(w.lane), writes ? "writes" : "reads");
    };
    const Bytes &b = x.bytes, &c = f.access.bytes;
    faults_.push_back(fault(fmt::format("program, actor {}", a_.value), missing(who, f),
                            "bytes {} to {} of {}: {} while {}; nothing orders the two", std::max(b.from, c.from),
                            std::min(b.to, c.to), name_of(b.arena), says(who, x.writes), says(f.who, f.access.writes)));
  }
  // What would put them in order.
  std::string missing(const Who& who, const Foreign& f) const {
    if (f.told_early)
      return fmt::format("actor {} sends the message before instruction {} has written it", f.who.actor.value,
                         f.who.instruction.value);
    if (f.who.actor != a_ && f.window.until > who.instruction && who.actor == a_)
      return fmt::format(
          "the message is complete at instruction {} ({}) only, and actor {} does not know at its "
          "instruction {} that actor {} has passed instruction {}",
          f.window.until.value, str_at(f.window.until), f.who.actor.value, f.who.instruction.value, a_.value,
          who.instruction.value);
    const bool later = who.instruction > f.who.instruction;
    const Who &first = later ? f.who : who, &second = later ? who : f.who;
    return fmt::format("lane {} has to wait for instruction {} in lane {} before instruction {}", name_of(second.lane),
                       first.instruction.value, name_of(first.lane), second.instruction.value);
  }
  std::string str_at(InstructionId i) const {
    const auto& code = p_.actors[a_].code;
    return code.has(i) ? p_.str(code[i]) : "the end of the step";
  }

  const Program& p_;
  const Lanes& lanes_;
  const ActorId a_;
  std::vector<Foreign> foreign_;  // by when they may begin
  std::vector<Fault>& faults_;
  Accesses accesses_;
  const Received& received_;
  UnderWay under_way_;
  std::size_t told_ = 0;
};

}  // namespace

std::vector<Fault> races(const Program& p, const IdVector<ActorId, Lanes>& lanes) {
  std::vector<Fault> faults;
  const Received received = received_in(p);
  IdVector<ActorId, std::vector<Foreign>> foreign = Collection(p, lanes, received).run();
  for (ActorId a : p.actors.ids()) RaceCheck(p, lanes[a], a, std::move(foreign[a]), received, faults).run();
  return faults;
}

std::vector<Fault> races(const Program& p) {
  IdVector<ActorId, Lanes> lanes;
  for (ActorId a : p.actors.ids()) lanes.push_back(lanes_of(p, a));
  return races(p, lanes);
}

}  // namespace stretto

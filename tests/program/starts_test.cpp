// Starts and awaits in their real order, on every rank: random programs are played rank by rank in random orders, and
// changed at random. What hangs a rank, or makes it read something else, has to be known before step 0.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "stretto/cost/collective.h"
#include "stretto/program/emit/touches.h"
#include "stretto/program/lanes.h"
#include "stretto/program/proofs/order.h"
#include "support/instruction_list.h"
#include "support/property.h"
#include "support/small_models.h"

namespace stretto {
namespace {
using Random = std::mt19937;

template <class T>
T one_of(const std::vector<T>& all, Random& random) {
  return all[random() % all.size()];
}

Program random_program(Random& random) {
  const auto family = one_of<std::string>({"gpt2", "llama", "mixtral"}, random);
  ModelConfig config = tiny(family, 4);
  config.tied = family == "gpt2" && random() % 2;
  if (family == "mixtral") config.experts = 4, config.top_k = 2;
  std::vector<ParallelNames> layouts = {
      {.data = 2}, {.tensor = 2, .sequence = true}, {.data = 2, .zero = 3}, {.data = 2, .tensor = 2}};
  if (family == "mixtral") layouts = {{.expert = 2}, {.data = 2, .expert = 2}};
  const auto schedule =
      one_of<std::string>({"1f1b", "zb-h1", "zb-v", "dualpipe", "dualpipe-v", "kimi-k2", "chimera"}, random);
  const Link link{.latency = 0, .bandwidth = std::pow(10.0, 6.0 + double(random() % 5))};
  return *compile(make_model(config, 32), adamw(), {.microbatches = 4, .clip = 1},
                  {.mesh = {{"pipe", 2}},
                   .names = one_of(layouts, random),
                   .schedule = schedule,
                   .link = random() % 2 ? link : Link{},
                   .within = link,
                   .overlap = random() % 2 ? Overlap::chunks : Overlap::calls})
              .program;
}

// What a collective is: two ranks that meet in different ones hang, or take each other's numbers.
struct Meeting {
  TaskId task;
  MicrobatchId microbatch;
  CallId call;
  std::vector<std::string> axes;
  auto operator<=>(const Meeting&) const = default;
};
std::vector<Meeting> meetings_of(const Program& p, const stretto::Run& r) {
  const Calls& body = *p.calls[r.task];
  std::vector<Meeting> all;
  for (CallId c : ids(calls_of(r, body)))
    if (const Node& n = body.graph.node(body.calls[c].node); n.op->collective)
      all.push_back({r.task, r.microbatch, c, shape_of(body.graph, n, p.mesh).axes});
  return all;
}

// Every rank has a list of its own and its own lanes, and goes on when it likes.
class Ranks {
 public:
  explicit Ranks(const Program& p) : p_(p) {
    for (ActorId a : p.actors.ids())
      for (int c = 0; c < p.ranks_per_actor(); ++c)
        ranks_.push_back({.actor = a, .coordinate = c, .code = p.actors[a].code});
  }
  Code& code(int rank) { return ranks_[rank].code; }

  bool finish(Random& random) {
    std::vector<int> order(ranks_.size());
    for (std::size_t r = 0; r < order.size(); ++r) order[r] = int(r);
    for (std::optional<std::size_t> before; before != done_;) {
      before = done_;
      std::shuffle(order.begin(), order.end(), random);
      for (int r : order)
        for (std::size_t n = 1 + random() % 8; n > 0 && step(ranks_[r]); --n) {
        }
    }
    return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& r) { return !r.code.has(r.at); });
  }

 private:
  struct Rank {
    ActorId actor;
    int coordinate = 0;
    Code code;
    InstructionId at{0};
    std::size_t met = 0;  // of the collectives that the instruction waits for in place
    std::map<DeviceLane, std::vector<Meeting>> meets = {};                  // that it has come to, in each lane
    std::map<DeviceLane, std::size_t> done = {};                            // how many of those are over
    std::map<CollectiveId, std::pair<DeviceLane, std::size_t>> until = {};  // how many of a lane
  };
  bool step(Rank& r) {
    if (!r.code.has(r.at)) return false;
    const bool goes = match(
        r.code[r.at], [&](const stretto::Run& x) { return in_place(r, x); },
        [&](const Send& s) {
          return sent_.insert({s.transfer, r.coordinate}).second;
        },
        [&](const Receive& x) {
          return sent_.contains({x.transfer, r.coordinate});
        },
        [&](const Start& s) {
          const DeviceLane lane = lane_of(p_.task(s.run).part);
          for (const Meeting& m : meetings_of(p_, s.run)) r.meets[lane].push_back(m);
          r.until[s.collective] = {lane, r.meets[lane].size()};
          return true;
        },
        [&](const Await& w) {
          const auto it = r.until.find(w.collective);
          return it != r.until.end() && over(r, it->second.first, it->second.second);
        });
    if (goes) r.at = InstructionId(r.at.value + 1), r.met = 0, ++done_;
    return goes;
  }
  bool in_place(Rank& r, const stretto::Run& x) {
    std::vector<Meeting>& meets = r.meets[DeviceLane::compute];
    for (const std::vector<Meeting> all = meetings_of(p_, x); r.met < all.size(); ++r.met) {
      if (!waits_.contains({r.actor, r.coordinate}))
        meets.push_back(all[r.met]), waits_.insert({r.actor, r.coordinate});
      if (!over(r, DeviceLane::compute, meets.size())) return false;
      waits_.erase({r.actor, r.coordinate});
      ++done_;
    }
    return true;
  }
  // A lane does one thing after the other: each of its first `count` is over when all members have come to it.
  bool over(Rank& r, DeviceLane lane, std::size_t count) {
    const std::vector<Meeting>& mine = r.meets[lane];
    for (std::size_t& k = r.done[lane]; k < count; ++k)
      for (Rank& other : ranks_)
        if (other.actor == r.actor && together(r.coordinate, other.coordinate, mine[k].axes))
          if (const std::vector<Meeting>& its = other.meets[lane]; its.size() <= k || its[k] != mine[k]) return false;
    return true;
  }
  bool together(int x, int y, const std::vector<std::string>& axes) const {
    for (std::size_t i = p_.mesh.size(); i-- > 0;) {
      const Axis& a = p_.mesh[i];
      const bool along = std::find(axes.begin(), axes.end(), a.name) != axes.end();
      if (!along && x % a.size != y % a.size) return false;
      x /= a.size, y /= a.size;
    }
    return true;
  }

  const Program& p_;
  std::vector<Rank> ranks_;
  std::set<std::pair<TransferId, int>> sent_;
  std::size_t done_ = 0;                     // instructions and collectives in place
  std::set<std::pair<ActorId, int>> waits_;  // ranks that have come to a collective in place
};

template <class... Kinds>
std::vector<InstructionId> all_of(const Code& code) {
  std::vector<InstructionId> found;
  for (InstructionId i : code.ids())
    if ((std::holds_alternative<Kinds>(code[i]) || ...)) found.push_back(i);
  return found;
}

// Somewhere else, not far away.
void move(Code& code, InstructionId from, Random& random) {
  std::vector<Instruction> all(code.begin(), code.end());
  const Instruction x = all[from.value];
  all.erase(all.begin() + from.value);
  const int far = 1 + int(random() % 12), to = int(from.value) + (random() % 2 ? far : -far);
  all.insert(all.begin() + std::clamp(to, 0, int(all.size())), x);
  code = Code(all);
}

TEST(Starts, WhatIsProvedToFinishDoesSoOnEveryRank) {
  Random random(1);
  int hang = 0, finish = 0;
  for (int n = asked_cases(12); n > 0; --n) {
    const Program p = random_program(random);
    EXPECT_TRUE(Ranks(p).finish(random));
    for (int k = 0; k < 10; ++k) {
      Program changed = p;
      Code& code = changed.actors[ActorId(random() % 2)].code;
      for (int twice = 0; twice < 2; ++twice) move(code, one_of(all_of<Send, Receive>(code), random), random);
      const bool proved = play(changed, {}, {}).empty();
      EXPECT_EQ(proved, Ranks(changed).finish(random));
      ++(proved ? finish : hang);
    }
  }
  EXPECT_GT(hang, 0);
  EXPECT_GT(finish, 0);
}

// All ranks of an actor have one list. If they had not, they would hang, and their programs would have other hashes.
TEST(Starts, OneRankInAnotherOrderHangs) {
  Random random(2);
  int tried = 0;
  for (int n = asked_cases(12); n > 0; --n) {
    const Program p = random_program(random);
    Ranks ranks(p);
    const std::vector<InstructionId> starts = all_of<Start>(p.actors[ActorId(0)].code);
    if (starts.size() < 2) continue;
    const std::size_t at = random() % (starts.size() - 1);
    Program changed = p;
    test::changed(changed.actors[ActorId(0)],
                  [&](test::InstructionList& code) { std::swap(code[starts[at]], code[starts[at + 1]]); });
    ranks.code(0) = changed.actors[ActorId(0)].code;
    const auto lane = [&](std::size_t k) {
      return lane_of(p.task(std::get<Start>(p.actors[ActorId(0)].code[starts[k]]).run).part);
    };
    if (lane(at) != lane(at + 1)) continue;
    EXPECT_NE(p.hash(), changed.hash());
    EXPECT_FALSE(ranks.finish(random));
    ++tried;
  }
  EXPECT_GT(tried, 0);
}

// What lies in an actor's memory, as hashes of what it was made of. Collectives work as early or as late as they may.
class Contents {
 public:
  Contents(const Program& p, ActorId a, bool early) : p_(p), a_(p.actors[a]), early_(early) {}
  // Of all that is sent, and of what lies there in the end; none: it awaits what is not under way.
  std::optional<std::map<std::pair<u64, u64>, u64>> run() {
    for (const Instruction& i : a_.code) match(i, [&](const auto& x) { does(x); });
    if (!right_ || !started_.empty()) return std::nullopt;
    for (const auto& [cell, what] : cells_)
      if (cell.arena != Arena::activations && cell.arena != Arena::scratch)
        seen_[{1'000'000 + u64(cell.arena), cell.at}] = what;
    return std::move(seen_);
  }

 private:
  struct Cell {
    Arena arena;
    std::optional<ActorId> elsewhere;
    u64 at;
    auto operator<=>(const Cell&) const = default;
  };
  static u64 mixed(u64 x, u64 y) { return (x ^ (y + 0x9e3779b97f4a7c15 + (x << 6) + (x >> 2))) * 0xff51afd7ed558ccd; }
  template <class Visit>
  void cells(const Slot& s, u64 from, u64 to, Visit visit) {
    for (u64 k = (s.offset + from) / 64; k < (s.offset + to + 63) / 64; ++k) visit(cells_[{s.arena, s.elsewhere, k}]);
  }
  void calls(const stretto::Run& r) {
    const Calls& body = *p_.calls[r.task];
    for (CallId c : ids(calls_of(r, body))) {
      u64 made = mixed(mixed(r.task.value, r.microbatch.value), c.value);
      const std::vector<Touch> all = touches_of(body, {c, CallId(c.value + 1)});
      const auto slot = [&](const Touch& t) { return a_.slots[SlotId(r.args.value + t.buffer.value)]; };
      for (const Touch& t : all)
        if (t.read) cells(slot(t), t.span.from, t.span.to, [&](u64 x) { made = mixed(made, x); });
      for (const Touch& t : all)
        if (t.written) cells(slot(t), t.span.from, t.span.to, [&](u64& x) { x = made = mixed(made, 1); });
    }
  }
  void does(const stretto::Run& r) { calls(r); }
  void does(const Start& s) {
    if (early_) calls(s.run);
    right_ = started_.insert({s.collective, s.run}).second && right_;
  }
  void does(const Await& w) {
    const auto it = started_.find(w.collective);
    if (it == started_.end()) return void(right_ = false);
    if (!early_) calls(it->second);
    started_.erase(it);
  }
  void does(const Send& s) {
    const Transfer& t = p_.transfers[s.transfer];
    for (const Extent& e : t.extents)
      if (!t.direct)
        cells(e.from, 0, e.bytes, [&](u64 x) {
          seen_[{s.transfer.value, 0}] = mixed(seen_[{s.transfer.value, 0}], x);
        });
  }
  void does(const Receive& r) {
    for (const Extent& e : p_.transfers[r.transfer].extents)
      cells(e.to, 0, e.bytes, [&](u64& x) { x = mixed(r.transfer.value, 7); });
  }

  const Program& p_;
  const ActorProgram& a_;
  const bool early_;
  bool right_ = true;
  std::map<Cell, u64> cells_;
  std::map<CollectiveId, stretto::Run> started_;
  std::map<std::pair<u64, u64>, u64> seen_;
};

// A start or an await that is moved, left out or doubled is harmless, or it is reported.
TEST(Starts, AndAwaitsOutOfOrderAreReported) {
  Random random(3);
  int harmful = 0, harmless = 0;
  for (int n = asked_cases(8); n > 0; --n) {
    const Program p = random_program(random);
    const ActorId actor(random() % 2);
    const auto right = Contents(p, actor, true).run();
    ASSERT_TRUE(right);
    EXPECT_EQ(right, Contents(p, actor, false).run()) << "collectives may take as long as they like";
    const std::vector<InstructionId> all = all_of<Start, Await>(p.actors[actor].code);
    for (int k = 0; k < 10 && !all.empty(); ++k) {
      Program changed = p;
      Code& code = changed.actors[actor].code;
      const InstructionId at = one_of(all, random);
      if (const unsigned how = random() % 8; how == 0)
        test::changed(changed.actors[actor], [&](test::InstructionList& all) {
          all[at] = all[InstructionId(at.value > 0 ? at.value - 1 : 1)];
        });
      else
        move(code, at, random);
      const bool same = Contents(changed, actor, true).run() == right && Contents(changed, actor, false).run() == right;
      ++(same ? harmless : harmful);
      EXPECT_TRUE(same || !verify(changed).empty()) << changed.str(p.actors[actor].code[at]) << " at " << at.value;
    }
  }
  EXPECT_GT(harmful, 0);
  EXPECT_GT(harmless, 0);
}

}  // namespace
}  // namespace stretto

#include "stretto/comm/link_bench.h"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <bit>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "stretto/base/clock.h"
#include "stretto/base/error.h"
#include "stretto/base/text.h"
#include "stretto/base/threads.h"
#include "stretto/comm/wiring.h"

namespace stretto {
namespace {

constexpr Arena bench_arena = Arena::activations;  // where everything lies
constexpr CollectiveKind measured_kinds[] = {CollectiveKind::reduce, CollectiveKind::gather, CollectiveKind::scatter,
                                             CollectiveKind::exchange};

// How ranks agree when to begin, and on how long something took.
class Company {
 public:
  virtual ~Company() = default;
  virtual double largest(int rank, double own) = 0;  // of all ranks'; nobody goes on before all are here
};

class ThreadCompany : public Company {
 public:
  explicit ThreadCompany(int ranks) : meet_(ranks), told_(ranks) {}
  double largest(int rank, double own) override {
    told_[rank] = own;
    meet_.arrive_and_wait();
    const double most = *std::max_element(told_.begin(), told_.end());
    meet_.arrive_and_wait();
    return most;
  }

 private:
  std::barrier<> meet_;
  std::vector<double> told_;
};

class ProcessCompany : public Company {
 public:
  explicit ProcessCompany(Peers& peers) : peers_(peers) {}
  double largest(int rank, double own) override {
    std::vector<u64> told(peers_.size());
    told[rank] = std::bit_cast<u64>(own);
    peers_.merge(told);
    double most = 0;
    for (const u64 t : told) most = std::max(most, std::bit_cast<double>(t));
    return most;
  }

 private:
  Peers& peers_;
};

// Pairs of neighbours along one axis that exchange messages at the same time, all within nodes or all between them.
struct Pairing {
  std::string axis;
  bool between = false;
  std::vector<std::pair<int, int>> pairs;
};

std::vector<Pairing> pairings_of(const Mesh& mesh, const std::vector<int>& nodes) {
  std::vector<Pairing> all;
  for (const Axis& axis : mesh)
    for (const bool between : {false, true})
      for (int shift = 0; shift < std::min(2, axis.size - 1); ++shift) {
        Pairing p{.axis = axis.name, .between = between};
        for (int r = 0; r < mesh.ranks(); ++r) {
          const std::vector<int> group = group_of(mesh, r, {axis.name});
          const auto at = std::find(group.begin(), group.end(), r), next = at + 1;
          if ((at - group.begin()) % 2 != shift || next == group.end()) continue;
          if ((nodes[r] != nodes[*next]) == between) p.pairs.push_back({r, *next});
        }
        if (p.pairs.empty()) continue;
        all.push_back(std::move(p));
        break;
      }
  return all;
}

// Every axis beside the pipeline's, and all of them together.
std::vector<std::vector<std::string>> groups_of_mesh(const Mesh& mesh) {
  std::vector<std::vector<std::string>> all;
  std::vector<std::string> together;
  for (const Axis& a : mesh) {
    if (a.name == "pipe" || a.size == 1) continue;
    all.push_back({a.name});
    together.push_back(a.name);
  }
  if (together.size() > 1) all.push_back(together);
  return all;
}

// Dense, of so many bytes: a member's whole operand or result, whichever is larger.
CollectiveShape dense_shape(CollectiveKind kind, int members, u64 bytes, const std::vector<std::string>& axes) {
  const i64 all = bytes / 4, box = kind == CollectiveKind::reduce ? all : std::max<i64>(1, all / members);
  CollectiveShape s{.kind = kind, .members = members, .axes = axes};
  add_box_dim(s, box, 1, 1);
  if (kind == CollectiveKind::scatter || kind == CollectiveKind::exchange) s.in_step = box;
  if (kind == CollectiveKind::gather || kind == CollectiveKind::exchange) s.out_step = box;
  return s;
}

int exchanges_of(u64 bytes) { return std::clamp<u64>((u64(4) << 20) / bytes, 2, 16) + 1; }
int repeats_of(u64 bytes) { return std::clamp<u64>((u64(8) << 20) / bytes, 2, 32); }

double median_of(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

// One actor per rank; every pair sends something there and back, several times.
// Messages are taken from the beginning of a rank's memory and go to places of their own after `taken`.
Program exchange_program(int ranks, const Pairing& p, u64 bytes, u64 memory, u64 taken) {
  Program program;
  program.actors.resize(ranks);
  for (ActorProgram& a : program.actors) {
    a.code = Code(std::vector<Instruction>(1));
    a.bytes[bench_arena] = memory;
  }
  for (const auto& [low, high] : p.pairs) {
    const RouteId there = program.routes.push_back({ActorId(low), ActorId(high), bytes, "there"});
    const RouteId back = program.routes.push_back({ActorId(high), ActorId(low), bytes, "back"});
    for (u64 i = 0; std::cmp_less(i, exchanges_of(bytes)); ++i)
      for (const RouteId route : {there, back})
        program.transfers.push_back({.route = route,
                                     .extents = {{.to = {.offset = taken + i * bytes}, .bytes = bytes}},
                                     .released = InstructionId(1)});
  }
  return program;
}

class Bench {
 public:
  Bench(const Mesh& mesh, const LinkBenchOptions& options, Peers* peers)
      : mesh_(mesh), options_(options), peers_(peers), ranks_(mesh.ranks()) {
    nodes_ = peers ? peers->nodes() : std::vector<int>(ranks_);
    std::map<int, int> on_node;
    for (const int n : nodes_) result_.ranks_per_node = std::max(result_.ranks_per_node, ++on_node[n]);
    result_.ranks = ranks_;
    result_.nodes = on_node.size();
    for (const u64 bytes : options_.sizes) {
      half_ = std::max(half_, (bytes + 4095) / 4096 * 4096);
      memory_ = std::max(memory_, half_ + exchanges_of(bytes) * bytes);
    }
    pairings_ = pairings_of(mesh_, nodes_);
    axes_ = groups_of_mesh(mesh_);
    if (peers_) {
      company_ = std::make_unique<ProcessCompany>(*peers_);
      wires_ = process_wiring(*peers_);
    } else {
      company_ = std::make_unique<ThreadCompany>(ranks_);
      wires_ = thread_wiring(spins());
    }
    if (options_.link) wires_ = emulated_wiring(std::move(wires_), {.links = equal_links(*options_.link)});
    make_memory();
    make_transports();
    make_groups();
  }

  LinkBench run() {
    prctl(PR_SET_TIMERSLACK, 1000UL);
    if (peers_) {
      measure(peers_->rank());
    } else {
      measure_on_threads();
    }
    std::vector<LinkSample> samples;
    for (const LinkRow& r : result_.rows) samples.push_back({r.use, r.seconds});
    result_.fit = fit_links(samples);
    return std::move(result_);
  }

 private:
  // They wait for each other: nobody begins before all of them are there.
  void measure_on_threads() {
    enum State { waits, begins, ends };
    std::atomic<State> state{waits};
    const auto leave = [&](State next) {
      State before = waits;
      if (state.compare_exchange_strong(before, next)) state.notify_all();
    };
    Threads threads([&] { leave(ends); });
    for (int r = 1; r < ranks_; ++r)
      threads.start(
          [this, r, &state] {
            prctl(PR_SET_TIMERSLACK, 1000UL);
            state.wait(waits);
            if (state == begins) measure(r);
          },
          std::size_t(ranks_ - 1));
    leave(begins);
    measure(0);
    threads.join();
  }

  struct Member {
    CollectiveGroup* group = nullptr;
    int number = 0;
  };
  struct Collective {
    CollectiveShape shape;
    std::size_t axes = 0;  // into axes_
    u64 bytes = 0;
    std::uint32_t prepared = 0;
  };

  bool here(int rank) const { return !peers_ || peers_->rank() == rank; }
  std::byte* memory(int rank) const { return arenas_[arenas_.size() == 1 ? 0 : rank][bench_arena]; }

  void make_memory() {
    if (peers_ && peers_->shares_memory()) {
      arenas_ = peers_->share(exchange_program(ranks_, {}, 0, memory_, half_), true);
    } else {
      for (int r = 0; r < (peers_ ? 1 : ranks_); ++r) {
        if (peers_) arenas_.push_back(peers_->arenas(exchange_program(ranks_, {}, 0, memory_, half_), true));
        if (!peers_) arenas_.emplace_back();
        std::byte*& at = arenas_.back()[bench_arena];
        if (!at) at = own_.emplace_back(memory_).data();
      }
    }
    for (int r = 0; r < ranks_; ++r)
      if (here(r)) std::memset(memory(r), 0, memory_);
  }

  void make_transports() {
    for (const Pairing& p : pairings_)
      for (const u64 bytes : options_.sizes) {
        const Program& program =
            *programs_.emplace_back(std::make_unique<Program>(exchange_program(ranks_, p, bytes, memory_, half_)));
        transports_.push_back(wires_->transport(program, arenas_, 0));
      }
  }

  void make_groups() {
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      members_.emplace_back(ranks_);
      for (int r = 0; r < ranks_; ++r) {
        if (!here(r)) continue;
        const std::vector<int> ranks = group_of(mesh_, r, axes_[a]);
        Member& m = members_[a][r];
        m.number = std::find(ranks.begin(), ranks.end(), r) - ranks.begin();
        auto& group = groups_[{a, ranks[0]}];
        if (!group) group = wires_->group(ranks, m.number, 1);
        m.group = group.get();
      }
      const int members = group_of(mesh_, 0, axes_[a]).size();
      for (const CollectiveKind kind : measured_kinds)
        for (const u64 bytes : options_.sizes) {
          Collective c{.shape = dense_shape(kind, members, bytes, axes_[a]), .axes = a, .bytes = bytes};
          for (const Member& m : members_[a])
            if (m.group) c.prepared = m.group->prepare(c.shape);
          collectives_.push_back(std::move(c));
        }
    }
  }

  // As in the runtime: when every rank has a core, looking for a short time costs less than sleeping.
  int spins() const { return std::cmp_less_equal(ranks_, std::thread::hardware_concurrency()) ? 500 : 0; }

  // On every rank, which do the same at the same time.
  void measure(int rank) {
    const double copy = median_over_rounds(rank, [&] {
      const double start = now();
      for (int i = 0; i < 4; ++i) std::memcpy(memory(rank) + half_, memory(rank), half_);
      return (now() - start) / 4;
    });
    const bool writes = peers_ != nullptr || rank == 0;
    if (writes) result_.memory_bandwidth = 2 * half_ / copy;
    std::size_t number = 0;
    for (const Pairing& p : pairings_)
      for (const u64 bytes : options_.sizes) {
        const double seconds = exchange(rank, p, bytes, *transports_[number++]);
        if (writes)
          result_.rows.push_back({.what = "message",
                                  .group = p.axis,
                                  .nodes = p.between ? 2 : 1,
                                  .bytes = bytes,
                                  .sent = 1.0 * bytes,
                                  .seconds = seconds,
                                  .use = message_use(p.between, bytes)});
      }
    for (const Collective& c : collectives_) {
      const Member& m = members_[c.axes][rank];
      const auto once = [&] {
        m.group->wait(m.number, m.group->start(m.number, c.prepared, memory(rank), memory(rank) + half_));
      };
      const int repeats = repeats_of(c.bytes);
      const double seconds = median_over_rounds(rank, [&] {
        once();  // all are awake from now on
        const double start = now();
        for (int i = 0; i < repeats; ++i) once();
        return (now() - start) / repeats;
      });
      if (writes) add_row(c, seconds);
    }
  }

  template <class F>
  double median_over_rounds(int rank, const F& once) {
    std::vector<double> all;
    for (int i = 0; i < options_.rounds; ++i) {
      company_->largest(rank, 0);
      const double own = once();
      all.push_back(company_->largest(rank, own));
    }
    return median_of(all);
  }

  double exchange(int rank, const Pairing& p, u64 bytes, Transport& transport) {
    const auto pair = std::find_if(p.pairs.begin(), p.pairs.end(),
                                   [&](const auto& x) { return x.first == rank || x.second == rank; });
    std::vector<double> all;
    for (int round = 1; round <= options_.rounds; ++round) {
      transport.at(InstructionId(0));
      company_->largest(rank, 0);
      const double own = pair == p.pairs.end() ? 0
                                               : there_and_back(pair->first == rank, pair - p.pairs.begin(),
                                                                exchanges_of(bytes), round, transport);
      transport.at(InstructionId(1));
      all.push_back(company_->largest(rank, own));
    }
    return median_of(all);
  }

  // Seconds of one message.
  static double there_and_back(bool low, int pair, int times, int round, Transport& transport) {
    double start = 0;
    for (int i = 0; i < times; ++i) {
      const int message = 2 * (pair * times + i);
      const TransferId there(message), back(message + 1);
      if (low)
        transport.send(there, round), transport.receive(back, round);
      else
        transport.receive(there, round), transport.send(back, round);
      if (i == 0) start = now();  // both are awake from now on
    }
    return (now() - start) / (2 * (times - 1));
  }

  // Of the groups along these axes, one that is on the most nodes.
  void add_row(const Collective& c, double seconds) {
    LinkRow row{.what = std::string(name_of(c.shape.kind)),
                .group = join(axes_[c.axes], " "),
                .members = c.shape.members,
                .nodes = 0,
                .bytes = c.bytes,
                .sent = collective_bytes(c.shape),
                .seconds = seconds};
    for (int r = 0; r < ranks_; ++r) {
      const std::vector<int> ranks = group_of(mesh_, r, axes_[c.axes]);
      std::set<int> on;
      for (const int member : ranks) on.insert(nodes_[member]);
      if (ranks[0] != r || std::cmp_less_equal(on.size(), row.nodes)) continue;
      row.nodes = on.size();
      row.use = collective_use(c.shape, result_.ranks_per_node, ranks);
    }
    result_.rows.push_back(std::move(row));
  }

  Mesh mesh_;
  LinkBenchOptions options_;
  Peers* peers_;
  int ranks_;
  std::vector<int> nodes_;     // per rank
  u64 half_ = 0, memory_ = 0;  // bytes of a rank: what is given, and all of it
  std::vector<Pairing> pairings_;
  std::vector<std::vector<std::string>> axes_;
  std::unique_ptr<Company> company_;
  std::unique_ptr<Wiring> wires_;
  std::vector<std::vector<std::byte>> own_;
  std::vector<ArenaBases> arenas_;  // per rank, or of this one alone
  std::vector<std::unique_ptr<Program>> programs_;
  std::vector<std::unique_ptr<Transport>> transports_;  // per pairing and size
  std::map<std::pair<std::size_t, int>, std::unique_ptr<CollectiveGroup>> groups_;
  std::vector<std::vector<Member>> members_;  // per axes and rank
  std::vector<Collective> collectives_;
  LinkBench result_;
};

}  // namespace

LinkBench measure_links(const Mesh& mesh, const LinkBenchOptions& options, Peers* peers) {
  if (mesh.ranks() < 2)
    throw Error("bench comm", "there is one rank, which sends nothing to anybody")
        .hint("give a mesh, e.g. --parallel.data=2");
  return Bench(mesh, options, peers).run();
}

std::string LinkBench::str() const {
  std::vector<std::vector<std::string>> lines{
      {"what", "along", "members", "nodes", "bytes", "us", "GB/s sent", "fit us", "fit / measured"}};
  for (const LinkRow& r : rows) {
    const double predicted = stretto::seconds(fit, r.use);
    lines.push_back({r.what, r.group, fmt::format("{}", r.members), fmt::format("{}", r.nodes),
                     fmt::format("{}", r.bytes), fmt::format("{:.1f}", 1e6 * r.seconds),
                     fmt::format("{:.2f}", r.sent / r.seconds / 1e9), fmt::format("{:.1f}", 1e6 * predicted),
                     fmt::format("{:.2f}", predicted / r.seconds)});
  }
  return table(lines);
}

}  // namespace stretto

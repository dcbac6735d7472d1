// The other processes of a run, and what they tell each other before, between and after steps. Every process makes the
// same calls in the same order. Whoever waits sleeps, and gives up with an Error when stop() is called.
//
//   std::shared_ptr<Peers> peers = mpi_peers({.world = find_world(environment())});     // under mpirun -n 2
//   u64 seen[] = {stop_asked ? 1u : 0u};
//   peers->merge(seen);                                       // what anybody said
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/comm/board.h"
#include "stretto/comm/collective.h"
#include "stretto/comm/transport.h"
#include "stretto/comm/wiring.h"
#include "stretto/comm/world.h"

namespace stretto {

// How far a rank is: what a watchdog says about the others on its machine.
struct Pulse {
  i64 step = 0;
  std::uint32_t at = 0;
  bool waiting = false;
  double silent = 0;  // seconds since the process gave its last sign of life
  int pid = 0;
};

// What all processes are at: a start compiles and reads files, a step does neither, a checkpoint waits for disks.
enum class WaitFor : std::uint8_t { start, steps, saving };
// Of each, seconds after which waiting for the others is an Error; 0: never.
struct Timeouts {
  double start = 600, step = 600, saving = 3600;
  static Timeouts all(double seconds) { return {seconds, seconds, seconds}; }
};

class Peers {
 public:
  virtual ~Peers() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const World& world() const = 0;
  virtual std::string name() const = 0;               // of the library: "Open MPI 4.1.4"
  virtual const std::vector<int>& nodes() const = 0;  // per rank, which machine it is on; counted from 0

  virtual void merge(std::span<u64> words) = 0;                      // everybody gets the bits that anybody has
  virtual void broadcast(std::span<std::byte> bytes, int from) = 0;  // everybody gets those of one
  virtual std::vector<std::string> gather(const std::string&) = 0;   // everybody gets those of all
  // Words that are merged while everybody goes on.
  virtual std::unique_ptr<Board> board(std::size_t words) = 0;

  // Whether all processes reach each other's memory: they are on one machine.
  virtual bool shares_memory() const = 0;
  // Whether those on this machine do, be there others or not.
  virtual bool reaches_memory() const = 0;
  // The arenas of all ranks, as this process sees them; without those of parameters if others are used. Only when they
  // share memory. Frozen parameters are in the memory of the rank that keeps them (program/frozen.h).
  virtual std::vector<ArenaBases> share(const Program&, bool params) = 0;
  // The arenas of this rank, in memory that ranks on its machine reach for collectives; null where there is none.
  virtual ArenaBases arenas(const Program&, bool params) = 0;
  // `arenas`: of all ranks, or of this one alone, in a program for ranks that share no memory.
  virtual std::unique_ptr<Transport> transport(const Program&, std::span<const ArenaBases> arenas) = 0;
  // Collectives between some ranks, of which this is the `member`-th; all of them ask for their groups in the same
  // order. `under_way`: that a member may have started and not waited for. Operands lie in arenas. Within a machine
  // they go through memory, between machines by messages, by both where machines have equally many members.
  virtual std::unique_ptr<CollectiveGroup> group(const std::vector<int>& ranks, int member, int under_way) = 0;
  // The same for operands and results in so many bytes of each member's own.
  virtual GroupWithMemory group_with_memory(const std::vector<int>& ranks, int member, int under_way, u64 bytes) = 0;

  // How far the others are, when they share memory; else none.
  virtual std::unique_ptr<Milestones> milestones() = 0;

  // Signs of life, from any thread; only ranks on the same machine are seen.
  virtual void beat(i64 step, std::uint32_t at, bool waiting) noexcept = 0;
  virtual std::optional<Pulse> pulse(int rank) const = 0;

  virtual WaitFor waits_for() const noexcept = 0;  // begins as a start
  virtual void set_wait(WaitFor) noexcept = 0;
  virtual void stop() noexcept = 0;               // from any thread: whoever waits in one of these calls gets an Error
  [[noreturn]] virtual void abort(int code) = 0;  // ends all processes

  bool first() const { return rank() == 0; }
};

// While it is there, all are at something else.
class WaitScope {
 public:
  WaitScope(Peers* peers, WaitFor what) : peers_(peers), before_(peers ? peers->waits_for() : what) {
    if (peers_) peers_->set_wait(what);
  }
  ~WaitScope() {
    if (peers_) peers_->set_wait(before_);
  }
  WaitScope(const WaitScope&) = delete;

 private:
  Peers* peers_;
  WaitFor before_;
};

struct PeersOptions {
  World world = {};        // how many processes there should be
  Timeouts timeouts = {};  // of waiting for the others
  bool shared = true;      // use the memory that processes of one machine share; else everything goes through MPI
  // Called from another thread when that happens inside of MPI, where no Error can be thrown. Must not return. If it is
  // left out, the Error is printed and the process ends.
  std::function<void(const Error&)> give_up = {};
};
// Starts MPI, unless it is started already. An Error when Stretto was built without it. STRETTO_RANKS_PER_NODE=k in the
// environment makes every k processes of a machine a node of their own, for trying out what several machines would do.
std::shared_ptr<Peers> mpi_peers(const PeersOptions&);
bool has_mpi();

// Of this process.
inline int ranks_on_machine(const Peers& p) {
  return static_cast<int>(std::ranges::count(p.nodes(), p.nodes()[p.rank()]));
}

}  // namespace stretto

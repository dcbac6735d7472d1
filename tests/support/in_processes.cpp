#include "support/in_processes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdio>
#include <cstdlib>

#include "stretto/base/text.h"
#include "stretto/comm/peers.h"
#include "stretto/comm/world.h"

namespace stretto::test {
namespace {

constexpr double seconds_to_hang = 120;  // something hangs

struct Job {
  World world = find_world(environment());
  std::shared_ptr<Peers> peers = connected(true);  // MPI lives as long as this one
  int every = 1, seen = 0, compared = 0;

  std::shared_ptr<Peers> connected(bool shared) const {
    return mpi_peers({.world = world, .timeouts = Timeouts::all(seconds_to_hang), .shared = shared});
  }
  ~Job() {
    if (peers->first()) fmt::print("{} configurations: processes give the bits of threads\n", compared);
    std::fflush(stdout);
  }
};

Job* job() {
  static const std::unique_ptr<Job> job = [] {
    const char* every = std::getenv("STRETTO_TEST_PROCESSES");
    std::unique_ptr<Job> j;
    if (!every) return j;
    j = std::make_unique<Job>();
    j->every = std::max(1, std::atoi(every));
    // All say the same, the first is heard.
    if (!j->peers->first() && !std::freopen("/dev/null", "w", stdout)) j->peers->abort(1);
    return j;
  }();
  return job.get();
}

int ranks_of(const Parallel& p) {
  const ParallelNames& n = p.names;
  return p.mesh.ranks() * n.replicas * n.data * n.tensor * n.expert * n.context * n.depth;
}

// Losses, gradient norms and the parameters' hash.
using Outcome = std::vector<u64>;

Outcome trained(const Compiled& c, const RunOptions& run, const std::function<Batch(const Trainer&, int step)>& batch) {
  Trainer t(c, run);
  Outcome o;
  const int steps = std::getenv("STRETTO_LONG") ? 3 : 2;
  for (int i = 1; i <= steps; ++i) {
    const StepResult r = t.step(batch(t, i));
    o.push_back(std::bit_cast<u64>(r.loss));
    o.push_back(std::bit_cast<u64>(r.grad_norm));
  }
  o.push_back(t.parameters_hash());
  return o;
}

// The others would wait for ever.
template <class F>
void or_abort(Peers& peers, const std::string& about, F f) {
  try {
    f();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "rank %d: %s: %s\n", peers.rank(), about.c_str(), e.what());
    peers.abort(1);
  }
}

}  // namespace

bool in_processes() { return job() != nullptr; }

void same_in_processes(const Parallel& p, const std::function<Compiled(const Parallel&)>& compiled,
                       const std::function<Batch(const Trainer&, int step)>& batch) {
  Job& j = *job();
  if (ranks_of(p) != j.world.size || j.seen++ % j.every != 0) return;
  Parallel remote = p;
  remote.remote = true;
  const Compiled near = compiled(p), far = compiled(remote);
  const Parallel& q = near.parallel;
  const std::string about =
      fmt::format("{}; {}; schedule {}, state over {}, parameters over {}", q.mesh.str(), q.layout.str(),
                  near.program->schedule.name, join(q.storage.state, ","), join(q.storage.params, ","));
  Outcome outcomes[2];
  for (const bool shared : {false, true}) {
    const std::shared_ptr<Peers> peers = j.connected(shared);
    EXPECT_EQ(peers->shares_memory(), shared);
    or_abort(*peers, about, [&] {
      outcomes[shared] =
          trained(peers->shares_memory() ? near : far, {.timeout = seconds_to_hang, .peers = peers}, batch);
    });
  }
  Outcome threads(outcomes[0].size(), 0);
  or_abort(*j.peers, about, [&] {
    if (j.peers->first()) threads = trained(near, {}, batch);
    j.peers->merge(threads);
  });
  EXPECT_EQ(outcomes[true], threads) << "shared memory: " << about;
  EXPECT_EQ(outcomes[false], threads) << "messages: " << about;
  ++j.compared;
}

RunOptions ranks_of_this_run(int ranks) {
  if (!in_processes() || job()->world.size != ranks) return {};
  return {.timeout = seconds_to_hang, .peers = job()->peers};
}

}  // namespace stretto::test

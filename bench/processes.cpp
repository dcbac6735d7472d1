// Two processes against two threads, on two cores: the reference model as a pipeline and as data ranks, and what a
// message costs. Rounds of threads, of processes that share memory and of processes that send everything through MPI
// take turns in one run, because machines are noisy. Starts itself under mpirun.
//   build/bench/processes [rounds = 5] [sequences per microbatch = 4]
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "rounds.h"
#include "stretto/base/clock.h"
#include "stretto/base/text.h"
#include "stretto/comm/link_bench.h"
#include "stretto/comm/threads/thread_transport.h"
#include "stretto/models/family.h"
#include "stretto/stretto.h"

using namespace stretto;

namespace {

constexpr int microbatches = 8, context = 256, vocab = 8192;
using Lines = std::vector<std::vector<std::string>>;

[[noreturn]] void start_twice(int argc, char** argv) {
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 1);
  setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  std::vector<const char*> words{STRETTO_MPIRUN, "-n", "2", self.c_str()};
  for (int i = 1; i < argc; ++i) words.push_back(argv[i]);
  words.push_back(nullptr);
  execv(words[0], const_cast<char* const*>(words.data()));
  fmt::print(stderr, "{} cannot be started\n", words[0]);
  std::exit(1);
}

void together(Peers& peers) {
  u64 none[] = {0};
  peers.merge(none);
}

Compiled reference(Parallel parallel, int rows, bool remote) {
  const ModelConfig config{
      .family = "gpt2", .layers = 4, .width = 512, .heads = 8, .context = context, .vocab = vocab, .tied = false};
  parallel.remote = remote;
  return compile(make_model(config, rows), adamw({.lr = 3e-4}), {.microbatches = microbatches, .clip = 1}, parallel);
}

void steps(Peers& shared, Peers& apart, const std::shared_ptr<Peers> all[2], int rounds, int sequences) {
  struct Case {
    const char* name;
    Parallel parallel;
    int rows;
  };
  Lines lines{{"run", "threads tok/s", "shared memory / threads", "messages / threads"}};
  for (const Case& c : {Case{"pipe=2 1f1b", {.mesh = {{"pipe", 2}}}, microbatches * sequences},
                        Case{"pipe=2 zb-h1", {.mesh = {{"pipe", 2}}, .schedule = "zb-h1"}, microbatches * sequences},
                        Case{"data=2", {.names = {.data = 2}}, 2 * microbatches * sequences}}) {
    const Batch batch = some_batch(c.rows, context);
    std::optional<Trainer> threads;
    if (shared.first()) threads.emplace(reference(c.parallel, c.rows, false));
    Trainer near(reference(c.parallel, c.rows, false), {.peers = all[0]});
    Trainer far(reference(c.parallel, c.rows, true), {.peers = all[1]});
    std::vector<double> speed, near_share, far_share;
    for (int round = 0; round <= rounds; ++round) {  // the first is not counted
      const double alone = threads ? threads->step(batch).seconds : 0;
      together(shared);
      const double with = near.step(batch).seconds;
      together(apart);
      const double without = far.step(batch).seconds;
      together(apart);
      if (round == 0) continue;
      speed.push_back(double(c.rows) * context / alone);
      near_share.push_back(alone / with);
      far_share.push_back(alone / without);
    }
    if (shared.first())
      lines.push_back({c.name, fmt::format("{:.0f}", median(speed)), interval(near_share), interval(far_share)});
  }
  if (shared.first()) fmt::print("{}\n", table(lines));
}

// So many messages from the first rank to the second, sent one after the other and then received one after the other:
// seconds that both spend on one.
constexpr std::uint32_t burst = 1000;
Program burst_program(u64 bytes) {
  Program p;
  p.actors.resize(2);
  for (ActorProgram& a : p.actors) {
    a.code.push_back(Run{});
    a.bytes[Arena::activations] = bytes * (burst + 1);
  }
  p.routes.push_back({ActorId(0), ActorId(1), bytes, "there"});
  for (std::uint32_t i = 0; i < burst; ++i)
    p.transfers.push_back(
        {.extents = {{.to = {.offset = (i + 1) * bytes}, .bytes = bytes}}, .released = InstructionId(1)});
  return p;
}

double burst_cost(Peers* peers, u64 bytes) {
  const Program p = burst_program(bytes);
  std::vector<std::vector<std::byte>> memory;
  std::vector<ArenaBases> arenas;
  if (peers && peers->shares_memory()) arenas = peers->share(p, true);
  for (int i = 0; arenas.empty() && i < (peers ? 1 : 2); ++i) memory.emplace_back(bytes * (burst + 1));
  for (auto& m : memory) arenas.emplace_back()[Arena::activations] = m.data();
  std::unique_ptr<Transport> t;
  if (peers)
    t = peers->transport(p, arenas);
  else
    t = std::make_unique<ThreadTransport>(p, arenas);
  std::vector<double> costs;
  for (std::uint32_t round = 1; round <= 21; ++round) {
    double sending = 0, receiving = 0;
    t->at(InstructionId(0));
    if (peers) together(*peers);
    const double start = now();
    if (!peers || peers->rank() == 0)
      for (std::uint32_t i = 0; i < burst; ++i) t->send(TransferId(i), round);
    sending = now() - start;
    if (peers) together(*peers);
    const double middle = now();
    if (!peers || peers->rank() == 1)
      for (std::uint32_t i = 0; i < burst; ++i) t->receive(TransferId(i), round);
    receiving = now() - middle;
    t->at(InstructionId(1));
    u64 told[2] = {std::bit_cast<u64>(sending), std::bit_cast<u64>(receiving)};
    if (peers) {
      (peers->rank() == 0 ? told[1] : told[0]) = 0;
      peers->merge(told);
    }
    costs.push_back((std::bit_cast<double>(told[0]) + std::bit_cast<double>(told[1])) / burst);
  }
  return median(costs);
}

void messages(Peers& shared, Peers& apart) {
  const LinkBenchOptions o{.sizes = {64, 64 << 10}, .rounds = 21};
  const Mesh mesh{{"pipe", 2}};
  Lines lines{{"message", "bytes", "both sides, us", "one way, us"}};
  const auto add = [&](const char* name, Peers* peers) {
    const LinkBench one_way = measure_links(mesh, o, peers);
    for (const LinkRow& r : one_way.rows)
      lines.push_back({name, fmt::format("{}", r.bytes), fmt::format("{:.2f}", 1e6 * burst_cost(peers, r.bytes)),
                       fmt::format("{:.2f}", 1e6 * r.seconds)});
  };
  if (shared.first()) add("between threads", nullptr);
  together(shared);
  add("between processes that share memory", &shared);
  add("between processes, through MPI", &apart);
  if (shared.first()) fmt::print("{}", table(lines));
}

}  // namespace

int main(int argc, char** argv) {
  const World world = find_world(environment());
  if (world.size == 1) start_twice(argc, argv);
  const std::shared_ptr<Peers> peers[2] = {mpi_peers({.world = world}), mpi_peers({.world = world, .shared = false})};
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5, sequences = argc > 2 ? std::atoi(argv[2]) : 4;
  if (rounds > 0) steps(*peers[0], *peers[1], peers, rounds, sequences);
  messages(*peers[0], *peers[1]);
}

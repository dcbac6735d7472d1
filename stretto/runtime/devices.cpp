#include "stretto/runtime/devices.h"

#include <cstdlib>

#include "stretto/base/threads.h"
#include "stretto/kernels/async/async_device.h"

namespace stretto {
namespace {

constexpr int looks = 2000;  // of a thread of a team: some tens of microseconds

TeamOptions team_of(const Program& p, const RunOptions& o) {
  TeamOptions team{.threads = p.threads, .spins = enough_cores(p, o) ? looks : 0};
  if (o.share_all) team.least = 0;
  return team;
}

std::unique_ptr<Device> make_cpu(const Program& p, int, const RunOptions& o) { return cpu_device(team_of(p, o)); }

std::unique_ptr<Device> make_async(const Program& p, int rank, const RunOptions& o) {
  return std::make_unique<AsyncDevice>(
      AsyncOptions{.jitter = o.jitter, .seed = o.jitter_seed * 1000003 + rank, .team = team_of(p, o)});
}

}  // namespace

extern const DeviceType cpu_device_type{.name = "cpu", .about = "the CPU", .make = make_cpu, .threads = true};
extern const DeviceType async_device_type{.name = "async",
                                          .about = "the CPU, with lanes that are threads of their own",
                                          .make = make_async,
                                          .processes = false,
                                          .threads = true,
                                          .late = false};

#define STRETTO_DEVICE(name) extern const DeviceType name##_device_type;
#include "stretto/runtime/devices.def"
#undef STRETTO_DEVICE

const DeviceType& type_of(DeviceKind kind) {
  switch (kind) {
#define STRETTO_DEVICE(name) \
  case DeviceKind::name:     \
    return name##_device_type;
#include "stretto/runtime/devices.def"
#undef STRETTO_DEVICE
  }
  return cpu_device_type;
}

std::span<const DeviceKind> device_kinds() {
  static constexpr DeviceKind all[] = {
#define STRETTO_DEVICE(name) DeviceKind::name,
#include "stretto/runtime/devices.def"
#undef STRETTO_DEVICE
  };
  return all;
}

bool enough_cores(const Program& p, const RunOptions& o) {
  const int ranks = o.peers ? ranks_on_machine(*o.peers) : p.ranks();
  return std::cmp_greater_equal(usable_cores().size(), ranks * p.threads);
}

std::unique_ptr<Device> make_device(const Program& p, int rank, const RunOptions& o) {
  return type_of(o.device).make(p, rank, o);
}

RunOptions on_device(RunOptions o) {
  const bool here = !o.peers && !o.link && !o.cluster;
  const char* const all = std::getenv("STRETTO_DEVICE");
  if (o.device == DeviceKind::cpu && here && all && std::string_view(all) == "async") o.device = DeviceKind::async;
  const DeviceType& type = type_of(o.device);
  if (o.peers && !type.processes)
    throw Error("parallel.device", "{} devices are threads of one process, and there are {} processes", type.name,
                o.peers->size())
        .hint("start one process, or use device = \"cpu\"");
  if ((o.link || o.cluster) && !type.late)
    throw Error("parallel.device", "messages between {} devices cannot be made late", type.name)
        .hint("leave parallel.link out, or use device = \"cpu\"");
  if (o.device != DeviceKind::async) return o;
  if (const char* const seed = std::getenv("STRETTO_JITTER"); seed && o.jitter == 0) {
    o.jitter = 3e-4;
    o.jitter_seed = std::strtoull(seed, nullptr, 10);
  }
  return o;
}

// Results may be made in the memory of another actor, so a rank knows where that has its arenas, too.
std::unique_ptr<Wiring> wiring_of(const Program& p, std::span<Device* const> devices,
                                  std::span<const ArenaBases> arenas, int spins) {
  std::vector<LaneDevice*> lanes;
  for (Device* d : devices)
    if (auto* lane = dynamic_cast<LaneDevice*>(d)) lanes.push_back(lane);
  if (lanes.empty()) return thread_wiring(spins);
  LaneMemory memory;
  for (int rank = 0; rank < p.ranks(); ++rank) {
    std::vector<LaneMemory::Block> blocks;
    const ActorId own = p.actor_of_rank(rank);
    const auto add = [&](ActorId a) {
      const ArenaBases& at = arenas[p.rank_of(a, rank % p.ranks_per_actor())];
      for (std::size_t k = 0; k < arena_count; ++k) blocks.push_back({at.at(k), p.actors[a].bytes.at(k)});
    };
    add(own);
    for (const ActorId a : p.actors.ids())
      if (a != own) add(a);
    memory.add(std::move(blocks));
  }
  return lane_wiring(std::move(lanes), std::move(memory));
}

}  // namespace stretto

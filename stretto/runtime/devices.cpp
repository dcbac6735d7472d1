#include "stretto/runtime/devices.h"

#include <cstdlib>

#include "stretto/kernels/async/async_device.h"
#include "stretto/runtime/inner/emulated_device.h"

namespace stretto {

std::unique_ptr<Device> make_device(const Program& p, int rank, const RunOptions& o) {
  switch (o.device) {
    case DeviceKind::cpu:
      return cpu_device();
    case DeviceKind::async:
      return std::make_unique<AsyncDevice>(AsyncOptions{.jitter = o.jitter, .seed = o.jitter_seed * 1000003 + rank});
    case DeviceKind::emulated:
      return emulated_device(p, p.actor_of_rank(rank), o.machine, o.times);
  }
  return nullptr;
}

RunOptions on_device(RunOptions o) {
  const bool here = !o.peers && !o.link && !o.cluster;
  const char* const all = std::getenv("STRETTO_DEVICE");
  if (o.device == DeviceKind::cpu && here && all && std::string_view(all) == "async") o.device = DeviceKind::async;
  if (o.device != DeviceKind::async) return o;
  if (o.peers)
    throw Error("parallel.device", "asynchronous devices are threads of one process, and there are {} processes",
                o.peers->size())
        .hint("start one process, or use device = \"cpu\"");
  if (o.link || o.cluster)
    throw Error("parallel.device", "messages between asynchronous devices cannot be made late")
        .hint("leave parallel.link out, or use device = \"cpu\"");
  if (const char* const seed = std::getenv("STRETTO_JITTER"); seed && o.jitter == 0) {
    o.jitter = 3e-4;
    o.jitter_seed = std::strtoull(seed, nullptr, 10);
  }
  return o;
}

std::unique_ptr<Wiring> wiring_of(std::span<Device* const> devices, int spins) {
  std::vector<AsyncDevice*> lanes;
  for (Device* d : devices)
    if (auto* async = dynamic_cast<AsyncDevice*>(d)) lanes.push_back(async);
  return lanes.empty() ? thread_wiring(spins) : async_wiring(std::move(lanes));
}

bool computes(DeviceKind kind) { return kind != DeviceKind::emulated; }

}  // namespace stretto

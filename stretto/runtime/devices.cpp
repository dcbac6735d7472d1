#include "stretto/runtime/devices.h"

#include <cstdlib>

#include "stretto/kernels/async/async_device.h"

namespace stretto {
namespace {

std::unique_ptr<Device> make_cpu(const Program&, int, const RunOptions&) { return cpu_device(); }

std::unique_ptr<Device> make_async(const Program&, int rank, const RunOptions& o) {
  return std::make_unique<AsyncDevice>(AsyncOptions{.jitter = o.jitter, .seed = o.jitter_seed * 1000003 + rank});
}

}  // namespace

extern const DeviceType cpu_device_type{.name = "cpu", .about = "the CPU", .make = make_cpu};
extern const DeviceType async_device_type{.name = "async",
                                          .about = "the CPU, with lanes that are threads of their own",
                                          .make = make_async,
                                          .processes = false,
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

std::unique_ptr<Wiring> wiring_of(std::span<Device* const> devices, int spins) {
  std::vector<AsyncDevice*> lanes;
  for (Device* d : devices)
    if (auto* async = dynamic_cast<AsyncDevice*>(d)) lanes.push_back(async);
  return lanes.empty() ? thread_wiring(spins) : async_wiring(std::move(lanes));
}

}  // namespace stretto

#include "stretto/runtime/devices.h"

#include "stretto/runtime/emulated_device.h"

namespace stretto {

std::unique_ptr<Device> make_device(const Program& p, ActorId actor, const RunOptions& o) {
  switch (o.device) {
    case DeviceKind::cpu:
      return cpu_device();
    case DeviceKind::emulated:
      return emulated_device(p, actor, o.machine, o.times);
  }
  return nullptr;
}

bool computes(DeviceKind kind) { return kind != DeviceKind::emulated; }

}  // namespace stretto

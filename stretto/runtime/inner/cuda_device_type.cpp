// NVIDIA GPUs: a rank is a thread of this process and has a device of its own.
#include <cstdlib>

#include "stretto/kernels/cuda/cuda_device.h"
#include "stretto/runtime/devices.h"

namespace stretto {
namespace {

// Streams that wait for other devices must not keep others from the few ways to the device.
void check_connections() {
  const char* const given = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  if (!given || std::atoi(given) > int(lane_count)) return;
  throw Error("parallel.device",
              "CUDA_DEVICE_MAX_CONNECTIONS is {}, and ranks that wait for each other need {} or more", given,
              lane_count + 1)
      .hint("unset it: 8 is what it is by itself");
}

std::unique_ptr<Device> make_cuda(const Program& p, int rank, const RunOptions&) {
  if (p.ranks() > 1) check_connections();
  return std::make_unique<CudaDevice>(cuda_api(), rank);
}

}  // namespace

extern const DeviceType cuda_device_type{.name = "cuda",
                                         .about = "NVIDIA GPUs, one for each rank",
                                         .make = make_cuda,
                                         .same_bits = false,
                                         .one_memory = false,
                                         .processes = false,
                                         .late = false};

}  // namespace stretto

// NVIDIA GPUs: a rank is a thread of this process and has a device of its own.
#include "stretto/kernels/cuda/cuda_device.h"
#include "stretto/runtime/devices.h"

namespace stretto {
namespace {

std::unique_ptr<Device> make_cuda(const Program& p, int rank, const RunOptions&) {
  if (p.ranks() > 1)
    throw Error("parallel.device", "there are {} ranks, and CUDA devices do not exchange messages yet", p.ranks())
        .hint("use one rank, or device = \"cpu\"");
  return std::make_unique<CudaDevice>(cuda_api(), rank);
}

}  // namespace

extern const DeviceType cuda_device_type{.name = "cuda",
                                         .about = "an NVIDIA GPU, for one rank",
                                         .make = make_cuda,
                                         .same_bits = false,
                                         .processes = false,
                                         .late = false};

}  // namespace stretto

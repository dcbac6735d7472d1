#include "support/cuda/cuda_runs.h"

#include <memory>

#include "stretto/kernels/cuda/cuda_device.h"

namespace stretto::test {
namespace {

std::size_t span_of(const View& v) {
  i64 last = 0;
  for (std::size_t i = 0; i < v.sizes.size(); ++i) last += (v.sizes[i] - 1) * v.strides[i];
  return v.elements() == 0 ? 0 : std::size_t(last + 1) * size_of(v.dtype);
}

// Operands and results that share memory share it there, too.
struct Copies {
  std::vector<std::byte*> host, device;
  std::vector<std::size_t> bytes;
};

Runner prepare(const Call& call) {
  const auto device = std::make_shared<CudaDevice>(cuda_api(), 0);
  const KernelId kernel = device->prepare(call);
  std::vector<std::size_t> in, out;
  for (const View& v : call.in) in.push_back(span_of(v));
  for (const View& v : call.out) out.push_back(span_of(v));
  return [device, kernel, in, out](const Args& args) {
    Copies all;
    const auto there = [&](std::byte* host, std::size_t bytes) -> std::byte* {
      if (!host) return nullptr;
      for (std::size_t i = 0; i < all.host.size(); ++i)
        if (all.host[i] == host && all.bytes[i] == bytes) return all.device[i];
      std::byte* const at = device->allocate(bytes);
      device->write(at, host, bytes);
      all.host.push_back(host), all.device.push_back(at), all.bytes.push_back(bytes);
      return at;
    };
    std::vector<std::byte*> inputs, outputs;
    for (std::size_t i = 0; i < in.size(); ++i) inputs.push_back(there(args.in[i], in[i]));
    for (std::size_t i = 0; i < out.size(); ++i) outputs.push_back(there(args.out[i], out[i]));
    device->launch(DeviceLane::compute, kernel,
                   {.in = inputs.data(), .out = outputs.data(), .now = args.now, .launch = args.launch});
    if (const auto fault = device->finish(); fault && args.fault && !*args.fault) *args.fault = fault;
    for (std::size_t i = 0; i < all.host.size(); ++i) device->read(all.host[i], all.device[i], all.bytes[i]);
  };
}

}  // namespace

Kernel cuda_kernel() { return {.name = "cuda", .prepare = &prepare}; }

}  // namespace stretto::test

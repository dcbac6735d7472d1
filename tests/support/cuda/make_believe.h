// A make-believe CUDA driver, as a table of functions like the real one's: streams are threads, kernels are PTX that
// the machine runs, device memory has addresses that the host cannot follow. What a kernel does wrong comes out where
// a driver tells it: as the error of the next call that waits for the device, which does nothing from then on. What is
// not of the current device is refused, as is memory of a device that is not reached.
//
//   if (!make_believe_cuda()) GTEST_SKIP() << "...";       // NVRTC is not on this machine
//   CudaDevice device(*make_believe_cuda(), 0);
//
// Texts are compiled by NVRTC as for a chip, but to PTX. It is looked for like the library does, and in /opt.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "stretto/kernels/cuda/api.h"

namespace stretto::test {

const CudaApi* make_believe_cuda();  // null: there is no NVRTC

struct MakeBelieve {
  int devices = 8;
  bool reach = true;  // each other's memory
  int sm = 80;
  std::size_t memory = std::size_t(1) << 32;  // bytes of each device
  unsigned jitter = 0;                        // seed of pauses between what streams do; 0: none
};
MakeBelieve& make_believe();  // what devices that are made from now on are like
// Streams stand still from now on, until so many devices are waited for, all their work given. Whoever waits before
// that waits for half a minute; then they go on, and this was not so.
void make_believe_stands_still(int until_waited_for);
bool make_believe_stood_still();

struct MakeBelieveCounts {
  std::uint64_t launches = 0, instructions = 0, allocations = 0;
};
MakeBelieveCounts make_believe_counts();  // since the program began

// For libraries that work in a stream: after what is in it, on memory that is there (what is wrong is told as a
// kernel's mistakes are).
CudaProducts make_believe_products();
void make_believe_work(CudaStream, std::function<void()>);
std::byte* make_believe_memory(CudaAddress, std::size_t bytes);  // std::runtime_error: it is not all there

}  // namespace stretto::test

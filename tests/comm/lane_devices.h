// Devices of one kind, and what lies in the memory of each.
//
//   Devices devices(3, async_device);
//   const std::size_t block = devices.put([&](int member) -> Buffer& { return buffers[member]; });
//   LaneGroup group(devices.list, memory, DeviceLane::gradients);
#pragma once
#include <gtest/gtest.h>

#include <functional>

#include "stretto/comm/lanes/lane_group.h"
#include "stretto/kernels/async/async_device.h"
#include "stretto/kernels/cuda/cuda_device.h"
#include "support/buffer.h"
#include "support/cuda/make_believe.h"

namespace stretto::test {

class Devices {
 public:
  template <class Make>
  Devices(int members, Make make) {
    for (int m = 0; m < members; ++m) all.push_back(make(m));
    for (int m = 0; m < members; ++m) list.push_back({all[std::size_t(m)].get(), m});
    blocks_.resize(std::size_t(members));
    for (const auto& d : all)
      for (const auto& other : all)
        if (d != other) d->reach(*other);
  }
  // A block of every member's memory with a buffer's content.
  std::size_t put(const std::function<Buffer&(int)>& of_member) {
    for (std::size_t m = 0; m < all.size(); ++m) {
      const Buffer& b = of_member(int(m));
      put(int(m), b.data(), std::size_t(b.count()) * size_of(b.dtype()));
    }
    return blocks_[0].size() - 1;
  }
  void put(int member, const void* content, std::size_t bytes) {
    auto& own = blocks_[std::size_t(member)];
    own.push_back({all[std::size_t(member)]->allocate(std::max<std::size_t>(bytes, 8)), bytes});
    all[std::size_t(member)]->write(own.back().at, content, bytes);
  }
  std::byte* at(std::size_t block, int member) const { return blocks_[std::size_t(member)][block].at; }
  LaneMemory memory() const {
    LaneMemory memory;
    for (const auto& of_rank : blocks_) memory.add(of_rank);
    return memory;
  }
  void finish() const {
    for (const auto& d : all) EXPECT_FALSE(d->finish());
  }
  std::vector<std::unique_ptr<LaneDevice>> all;
  std::vector<LaneMember> list;

 private:
  std::vector<std::vector<LaneMemory::Block>> blocks_;
};

inline std::unique_ptr<LaneDevice> async_device(int m) {
  return std::make_unique<AsyncDevice>(AsyncOptions{.jitter = 1e-4, .seed = u64(m)});
}
inline std::unique_ptr<LaneDevice> cuda_device(int m) {
  make_believe().jitter = 3;
  return std::make_unique<CudaDevice>(*make_believe_cuda(), m);
}

}  // namespace stretto::test

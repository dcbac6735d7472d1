// Words in memory of the host that all devices of the process reach: streams write them and wait for them.
//
//   CudaWords words(api, 3);
//   api.driver.write_word(stream, words.at(2), number, 0);
#pragma once
#include <atomic>
#include <memory>
#include <vector>

#include "stretto/base/threads.h"
#include "stretto/kernels/cuda/api.h"
#include "stretto/kernels/lane_device.h"

namespace stretto {

class CudaWords : public LaneWords {
 public:
  CudaWords(const CudaApi&, std::size_t count);  // a device is current
  ~CudaWords() override;
  CudaWords(const CudaWords&) = delete;
  CudaAddress at(std::size_t word) const { return reinterpret_cast<CudaAddress>(words_ + word); }
  std::uint32_t now(std::size_t word) const { return std::atomic_ref(words_[word]).load(std::memory_order_acquire); }
  // Nothing can take a wait out of a stream, so the words themselves rise, again and again: what is in streams still
  // sets them back.
  void stop() noexcept override;
  // Whether they were stopped; known for as long as somebody asks.
  using Stopped = std::shared_ptr<const std::atomic<bool>>;
  const Stopped& stopped() const { return known_; }

 private:
  void raise() noexcept;

  const CudaApi& api_;
  std::uint32_t* words_ = nullptr;
  std::vector<std::uint32_t> raised_;  // to what; as many as there are
  bool rose_ = false;
  std::shared_ptr<std::atomic<bool>> stopped_ = std::make_shared<std::atomic<bool>>(false);
  Stopped known_ = stopped_;
  Repeated raising_;  // last: it ends before the words go away
};

}  // namespace stretto

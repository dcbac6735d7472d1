#include "stretto/kernels/cuda/words.h"

#include <cstring>

namespace stretto {
namespace {

constexpr std::uint32_t beyond = 1u << 30;  // nobody waits for a number so far ahead
constexpr double pause = 1e-3;              // seconds

}  // namespace

CudaWords::CudaWords(const CudaApi& api, std::size_t count) : api_(api), raised_(std::max<std::size_t>(count, 1)) {
  void* at = nullptr;
  const std::size_t bytes = sizeof(std::uint32_t) * raised_.size();
  check(api_, api_.driver.host_memory(&at, bytes, cuda_number::host_for_all_devices), "cuMemHostAlloc");
  std::memset(at, 0, bytes);
  words_ = static_cast<std::uint32_t*>(at);
}

CudaWords::~CudaWords() {
  raising_.end();
  api_.driver.free_host_memory(words_);
}

void CudaWords::stop() noexcept {
  if (stopped_->exchange(true)) return;
  try {
    raising_.start(pause, [this] { raise(); });
  } catch (...) {
    raise();
  }
}

void CudaWords::raise() noexcept {
  for (std::size_t i = 0; i < raised_.size(); ++i) {
    if (!rose_) raised_[i] = now(i) + beyond;
    if (static_cast<std::int32_t>(raised_[i] - now(i)) > 0) std::atomic_ref(words_[i]).store(raised_[i]);
  }
  rose_ = true;
}

}  // namespace stretto

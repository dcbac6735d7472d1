#include "stretto/kernels/device.h"

#include <cblas.h>
#include <sys/mman.h>

#include <cstring>

#include "stretto/base/text.h"

namespace stretto {
namespace {

constexpr std::size_t huge = std::size_t(2) << 20;

class CpuDevice : public Device {
 public:
  ~CpuDevice() override {
    for (const auto& [p, bytes] : maps_) munmap(p, bytes);
  }

  std::byte* allocate(std::size_t bytes) override {
    if (bytes == 0) return nullptr;
    const std::size_t rounded = (bytes + huge - 1) / huge * huge, total = rounded + huge;
    void* p = mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
      throw Error("memory", "the system refuses {}", human_bytes(double(bytes)))
          .hint("use a smaller batch, more microbatches, recompute, or more ranks")
          .as(Error::Kind::run);
    maps_.push_back({p, total});
    auto at = (reinterpret_cast<std::uintptr_t>(p) + huge - 1) / huge * huge;
    std::byte* arena = reinterpret_cast<std::byte*>(at);
    madvise(arena, rounded, MADV_HUGEPAGE);
    // One write per page is enough: the system hands out zeroed pages.
    for (std::size_t i = 0; i < rounded; i += 4096) arena[i] = std::byte{0};
    return arena;
  }

  std::uint32_t prepare(const Call& call) override {
    const Kernel& k = choose_kernel(call);
    runners_.push_back({k.name, k.prepare(call)});
    return std::uint32_t(runners_.size() - 1);
  }
  std::string_view kernel_name(std::uint32_t call) const override { return runners_[call].first; }

  Event launch(std::uint32_t call, const Args& args) override {
    runners_[call].second(args);
    return {};
  }
  bool done(Event) override { return true; }

 private:
  std::vector<std::pair<std::string_view, Runner>> runners_;
  std::vector<std::pair<void*, std::size_t>> maps_;
};

}  // namespace

std::unique_ptr<Device> cpu_device() {
  openblas_set_num_threads(1);  // one rank, one core
  return std::make_unique<CpuDevice>();
}

}  // namespace stretto

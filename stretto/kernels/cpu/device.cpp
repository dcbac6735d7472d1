#include "stretto/kernels/device.h"

#include <cblas.h>
#include <sys/mman.h>

#include <cstring>

#include "stretto/base/pages.h"
#include "stretto/base/text.h"

namespace stretto {
namespace {

class CpuDevice : public Device {
 public:
  ~CpuDevice() override {
    for (const auto& [p, bytes] : maps_) munmap(p, bytes);
  }

  std::byte* allocate(std::size_t bytes) override {
    if (bytes == 0) return nullptr;
    std::byte* const arena = map_pages(bytes);
    if (!arena)
      throw Error("memory", "the system refuses {}", human_bytes(double(bytes)))
          .hint("use a smaller batch, more microbatches, recompute, or more ranks")
          .as(Error::Kind::run);
    maps_.push_back({arena, whole_pages(bytes)});
    // One write per page is enough: the system hands out zeroed pages.
    for (std::size_t i = 0; i < whole_pages(bytes); i += kPage) arena[i] = std::byte{0};
    return arena;
  }

  KernelId prepare(const Call& call) override {
    const Kernel& k = choose_kernel(call);
    return runners_.push_back({k.name, k.prepare(call)});
  }
  std::string_view kernel_name(KernelId call) const override { return runners_[call].first; }

  Event launch(KernelId call, const Args& args) override {
    runners_[call].second(args);
    return {};
  }
  bool done(Event) override { return true; }

 private:
  IdVector<KernelId, std::pair<std::string_view, Runner>> runners_;
  std::vector<std::pair<std::byte*, std::size_t>> maps_;
};

}  // namespace

std::unique_ptr<Device> cpu_device() {
  openblas_set_num_threads(1);  // one rank, one core
  return std::make_unique<CpuDevice>();
}

}  // namespace stretto
